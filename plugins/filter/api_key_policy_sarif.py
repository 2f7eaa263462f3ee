# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter plugin that converts the findings of a key policy to SARIF."""

from __future__ import annotations

DOCUMENTATION = r"""
name: api_key_policy_sarif
short_description: SARIF log of an API key policy's findings
version_added: 1.1.0
description:
  - Converts the findings of M(clouddb.control.api_key_policy) to a log in SARIF 2.1.0, which security dashboards read.
  - The log has a rule for each kind of findings, and a result for each finding on a key that was not revoked. C(unknown) and C(missing) are
    errors, the others are warnings.
  - The location of a result is logical, C(api_keys/) and the id of the key, or C(api_keys/name/) and the name of a missing key. As GitHub requires
    a file, it is also line 1 of a file C(api_keys), which does not exist.
  - The fingerprints of a result stay the same in later runs. They are C(apiKey/v1), and C(primaryLocationLineHash) for GitHub.
  - Characters of names that cannot be displayed are escaped.
  - In messages, brackets and backslashes are escaped with a backslash, and braces are doubled. In SARIF, the names of keys, C(owner) and
    C(reason) could otherwise contain links or placeholders.
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
  - plugin: clouddb.control.api_key_policy_junit
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
    dest: "{{ playbook_dir }}/keys.sarif"
    content: "{{ policy | clouddb.control.api_key_policy_sarif }}"
    mode: "0600"
"""

RETURN = r"""
_value:
  description: The log as JSON.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ..plugin_utils._policy.filters import filter_named
from ..plugin_utils._policy.sarif import sarif_text


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"api_key_policy_sarif": filter_named("api_key_policy_sarif", sarif_text)}
