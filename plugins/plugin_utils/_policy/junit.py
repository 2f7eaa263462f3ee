# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings as JUnit XML, which CI systems show as test results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from ...module_utils._untrusted import MAX_MESSAGE_LENGTH, displayable
from .kinds import KINDS, Finding, remaining, title_of

NAME = "api_key_policy"


def junit_xml(result: Mapping[str, Any]) -> str:
    """The XML of a result of the module api_key_policy: a suite for each kind that was checked, a test case for each finding.

    Findings that remain are failures. Those on keys that were revoked pass, and so does the only test case of a suite
    without findings.
    """
    root = ElementTree.Element("testsuites")
    failures = tests = 0
    for kind in result["checked"]:
        found = [finding for finding in result["findings"] if finding["kind"] == kind]
        suite = _suite(root, f"{NAME}.{kind}", kind, found)
        tests += int(suite.attrib["tests"])
        failures += int(suite.attrib["failures"])
    root.attrib.update(name=NAME, tests=str(tests), failures=str(failures), errors="0", time="0")
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}'


def _suite(root: ElementTree.Element, name: str, kind: str, found: Sequence[Finding]) -> ElementTree.Element:
    failed = remaining(found)
    suite = ElementTree.SubElement(root, "testsuite", name=name)
    suite.attrib.update(tests=str(max(1, len(found))), failures=str(len(failed)), errors="0", skipped="0", time="0")
    if not found:
        ElementTree.SubElement(suite, "testcase", classname=name, name=KINDS[kind].none_found, time="0")
    for finding in found:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=title_of(finding), time="0")
        message = displayable(finding["message"], MAX_MESSAGE_LENGTH)
        if finding in failed:
            failure = ElementTree.SubElement(case, "failure", type=kind, message=message)
            failure.text = message
        else:
            ElementTree.SubElement(case, "system-out").text = message
    return suite
