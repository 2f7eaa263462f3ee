# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter plugin that converts the findings of a key policy to JUnit XML."""

from __future__ import annotations

DOCUMENTATION = r"""
name: api_key_policy_junit
short_description: JUnit XML of an API key policy's findings
version_added: 1.1.0
description:
  - Converts the findings of M(clouddb.control.api_key_policy) to JUnit XML, which Jenkins, GitLab and other CI systems show as test results.
  - There is a test suite for each kind of findings that was checked, and a test case for each finding. A suite without findings has a single
    test case, which passes.
  - A finding is a failure, unless the key was revoked.
  - Characters of names that cannot be displayed are escaped.
author:
  - clouddb.control contributors (@clouddb)
options:
  _input:
    description:
      - Result of M(clouddb.control.api_key_policy).
    type: dict
    required: true
seealso:
  - module: clouddb.control.api_key_policy
  - plugin: clouddb.control.api_key_policy_sarif
    plugin_type: filter
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Report keys that violate the policy
  clouddb.control.api_key_policy:
    max_age: 90d
  register: policy

- name: Write the findings to a file for CI
  ansible.builtin.copy:
    dest: "{{ playbook_dir }}/keys.xml"
    content: "{{ policy | clouddb.control.api_key_policy_junit }}"
    mode: "0600"
"""

RETURN = r"""
_value:
  description: The XML.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ..plugin_utils._policy.filters import filter_named
from ..plugin_utils._policy.junit import junit_xml


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"api_key_policy_junit": filter_named("api_key_policy_junit", junit_xml)}
