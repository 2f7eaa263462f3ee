# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of a key policy as JUnit XML and as SARIF."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from ansible.errors import AnsibleFilterError
from jsonschema import Draft7Validator

from ansible_collections.clouddb.control.plugins.filter import api_key_policy_junit, api_key_policy_sarif
from ansible_collections.clouddb.control.plugins.module_utils._policy.policy import KINDS
from ansible_collections.clouddb.control.plugins.module_utils._version import COLLECTION_VERSION
from ansible_collections.clouddb.control.plugins.plugin_utils._policy import kinds

SCHEMA = Draft7Validator(json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8")))
HOSTILE = "{{ 7 * 7 }} <b>&\"'\x00\x1b[31m\x07\ud800\ufffe\u202e]]>\r\n" + "x" * 1000


def junit(value: Any) -> Any:
    return api_key_policy_junit.FilterModule().filters()["api_key_policy_junit"](value)


def sarif(value: Any) -> Any:
    return api_key_policy_sarif.FilterModule().filters()["api_key_policy_sarif"](value)


def finding(kind: str, key_id: int | None = 7, name: str = "deploy", outcome: str = "reported") -> dict[str, Any]:
    return {"kind": kind, "key_id": key_id, "name": name, "message": f"{name} is {kind}.", "outcome": outcome}


def result(*findings: dict[str, Any], checked: tuple[str, ...] = KINDS) -> dict[str, Any]:
    return {"findings": list(findings), "checked": list(checked)}


def suites(text: str) -> dict[str, ElementTree.Element]:
    return {suite.attrib["name"]: suite for suite in ElementTree.fromstring(text.encode()).iter("testsuite")}


def valid_log(text: str) -> dict[str, Any]:
    """The log, after its validation by the schema."""
    log: dict[str, Any] = json.loads(text)
    assert [error.message for error in SCHEMA.iter_errors(log)] == []
    return log


def test_kinds_have_texts() -> None:
    assert tuple(kinds.KINDS) == KINDS


# JUnit


def test_complete_xml() -> None:
    findings = [finding("expired"), finding("expired", 8, "ci", "revoked"), finding("missing", None, "backup")]
    assert junit(result(*findings, checked=("expired", "idle", "missing"))).splitlines() == [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<testsuites name="api_key_policy" tests="4" failures="2" errors="0" time="0">',
        '  <testsuite name="api_key_policy.expired" tests="2" failures="1" errors="0" skipped="0" time="0">',
        '    <testcase classname="api_key_policy.expired" name="deploy (id 7)" time="0">',
        '      <failure type="expired" message="deploy is expired.">deploy is expired.</failure>',
        "    </testcase>",
        '    <testcase classname="api_key_policy.expired" name="ci (id 8)" time="0">',
        "      <system-out>ci is expired.</system-out>",
        "    </testcase>",
        "  </testsuite>",
        '  <testsuite name="api_key_policy.idle" tests="1" failures="0" errors="0" skipped="0" time="0">',
        '    <testcase classname="api_key_policy.idle" name="No key is idle" time="0" />',
        "  </testsuite>",
        '  <testsuite name="api_key_policy.missing" tests="1" failures="1" errors="0" skipped="0" time="0">',
        '    <testcase classname="api_key_policy.missing" name="backup" time="0">',
        '      <failure type="missing" message="backup is missing.">backup is missing.</failure>',
        "    </testcase>",
        "  </testsuite>",
        "</testsuites>",
    ]


def test_revoked_keys_and_kinds_without_findings_pass() -> None:
    found = suites(
        junit(
            result(
                finding("idle", outcome="revoked"),
                finding("idle", 8, outcome="gone"),
                finding("idle", 9, outcome="kept"),
            )
        )
    )
    assert list(found) == [f"api_key_policy.{kind}" for kind in KINDS]
    assert [[each.tag for each in case] for case in found["api_key_policy.idle"]] == [
        ["system-out"],
        ["system-out"],
        ["failure"],
    ]
    assert found["api_key_policy.idle"].attrib["failures"] == "1"
    [passed] = found["api_key_policy.expired"]
    assert (passed.attrib["name"], len(passed)) == ("No key is too old", 0)


def test_kinds_that_are_not_checked_have_no_suite() -> None:
    assert list(suites(junit(result(checked=("duplicate",))))) == ["api_key_policy.duplicate"]


# SARIF


def location(name: str, path: str) -> dict[str, Any]:
    return {
        # GitHub needs a file and a line in each result.
        "physicalLocation": {"artifactLocation": {"uri": "api_keys"}, "region": {"startLine": 1}},
        "logicalLocations": [{"name": name, "fullyQualifiedName": path, "kind": "resource"}],
    }


def fingerprints(identity: bytes) -> dict[str, str]:
    fingerprint = hashlib.sha256(identity).hexdigest()
    # GitHub uses the second one only.
    return {"apiKey/v1": fingerprint, "primaryLocationLineHash": fingerprint}


def test_complete_log() -> None:
    text = sarif(result(finding("expired"), finding("missing", None, "backup")))
    log = valid_log(text)
    assert text == json.dumps(log, indent=2), "readable, and without characters that are not ASCII"
    [run] = log.pop("runs")
    assert log == {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0"}
    rules = run["tool"]["driver"].pop("rules")
    assert run["tool"]["driver"] == {
        "name": "clouddb.control.api_key_policy",
        "version": COLLECTION_VERSION,
        "informationUri": "https://github.com/clouddb/ansible-control",
    }
    assert [rule["id"] for rule in rules] == list(KINDS)
    assert rules[1] == {
        "id": "expired",
        "name": "ExpiredKey",
        "shortDescription": {"text": "The key is older than max_age."},
        "defaultConfiguration": {"level": "warning"},
    }
    for each in run["results"]:
        assert rules[each.pop("ruleIndex")]["id"] == each["ruleId"]
    assert run["results"] == [
        {
            "ruleId": "expired",
            "level": "warning",
            "message": {"text": "deploy is expired."},
            "locations": [location("deploy (id 7)", "api_keys/7")],
            "partialFingerprints": fingerprints(b"expired/7"),
        },
        {
            "ruleId": "missing",
            "level": "error",
            "message": {"text": "backup is missing."},
            "locations": [location("backup", "api_keys/name/backup")],
            "partialFingerprints": fingerprints(b"missing/backup"),
        },
    ]


def test_findings_on_revoked_keys_are_no_results() -> None:
    findings = [finding("idle", number, outcome=outcome) for number, outcome in enumerate(["revoked", "gone", "kept"])]
    [only] = valid_log(sarif(result(*findings)))["runs"][0]["results"]
    assert only["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "api_keys/2"


def test_fingerprints_depend_on_the_kind_and_the_key_only() -> None:
    def fingerprints(*findings: dict[str, Any]) -> list[str]:
        results = valid_log(sarif(result(*findings)))["runs"][0]["results"]
        return [each["partialFingerprints"]["apiKey/v1"] for each in results]

    same_start = "x" * 1000
    different = [
        finding("idle"),
        finding("idle", 8),
        finding("expired"),
        finding("missing", None),
        finding("missing", None, "ci"),
        finding("missing", None, "a\tb"),
        finding("missing", None, r"a\tb"),
        finding("missing", None, same_start),
        finding("missing", None, same_start + "y"),
        finding("missing", None, "\ud800"),
    ]
    first = fingerprints(*different)
    assert len(set(first)) == len(different)
    assert fingerprints(*({**each, "message": "later"} for each in reversed(different))) == first[::-1]


# SARIF 2.1.0, 3.11.5 and 3.11.6, as viewers implement them.
PLACEHOLDER = re.compile(r"\{\{|\}\}|(\{\d+\})")
LINK = re.compile(r"(?<!\\)((?:\\\\)*)\[((?:[^\\\[\]]|\\[\\\[\]])*)\]\(([^)]*)\)")


def displayed(text: str) -> str:
    """What a viewer shows for a message without links and placeholders."""
    assert not LINK.search(text)
    assert not any(found[1] for found in PLACEHOLDER.finditer(text))
    text = text.replace("{{", "{").replace("}}", "}")
    return re.sub(r"\\([\\\[\]])", r"\1", text)


@pytest.mark.parametrize(
    "name",
    [
        "[deploy](https://phishing.example)",
        "[here](0)",
        "\\[deploy](https://phishing.example)",
        "\\\\[deploy\\](https://phishing.example)",
        "[a[b](1)",
        "[](sarif:/runs/0/results/1)",
        "{0} {1}",
        "{{0}}",
        "{{{0}}}",
        "{",
        "}0{",
        "C:\\keys\\",
        "deploy-[a-z]",
    ],
)
def test_messages_show_names_as_they_are(name: str) -> None:
    [only] = valid_log(sarif(result(finding("unknown", name=name))))["runs"][0]["results"]
    assert displayed(only["message"]["text"]) == f"{name} is unknown."
    location = only["locations"][0]["logicalLocations"][0]
    assert location["name"] == f"{name} (id 7)", "this is no message"


def test_owner_and_reason_in_a_message_make_no_link() -> None:
    message = "x[ (id 7) matches no name. Owner: ](https://phishing.example) {. Reason: 0} [why](1)."
    [only] = valid_log(sarif(result({**finding("unknown"), "message": message})))["runs"][0]["results"]
    assert displayed(only["message"]["text"]) == message


def test_texts_of_rules_are_messages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds.KINDS, "idle", kinds.KINDS["idle"]._replace(description="[a](1) {0}"))
    rules = valid_log(sarif(result()))["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["shortDescription"]["text"] for rule in rules if rule["id"] == "idle"] == ["\\[a\\](1) {{0}}"]


def test_the_schema_refuses_other_logs() -> None:
    log = json.loads(sarif(result(finding("idle"))))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert not SCHEMA.is_valid(log)


# Both


@pytest.mark.parametrize("kind, key_id", [("unknown", 7), ("missing", None)])
def test_hostile_names_are_displayable(kind: str, key_id: int | None) -> None:
    hostile = finding(kind, key_id, HOSTILE)
    [case] = suites(junit(result(hostile)))[f"api_key_policy.{kind}"]
    [shown] = valid_log(sarif(result(hostile)))["runs"][0]["results"]
    message = shown["message"]["text"]
    assert message.isprintable()
    for text in (case.attrib["name"], case[0].attrib["message"], case[0].text or "", displayed(message)):
        assert text.isprintable()
        assert "<b>&\"'\\x00\\x1b[31m" in text
    for message in (case[0].attrib["message"], shown["message"]["text"]):
        assert message.endswith(f"x is {kind}."), "messages are longer than names may be"


@pytest.mark.parametrize("convert, name", [(junit, "api_key_policy_junit"), (sarif, "api_key_policy_sarif")])
@pytest.mark.parametrize(
    "value", [None, [], {}, "text", {"findings": [{}], "checked": ["idle"]}, {"findings": 5, "checked": ["idle"]}]
)
def test_invalid_input_is_an_error(convert: Any, name: str, value: Any) -> None:
    expected = f"^{name}: the input must be the result of clouddb.control.api_key_policy: (?!None)."
    with pytest.raises(AnsibleFilterError, match=expected):
        convert(value)
