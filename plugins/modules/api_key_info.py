#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the API keys of the account. Keeps P1 and P5."""

DOCUMENTATION = r"""
module: api_key_info
short_description: List the API keys of the account
version_added: 1.0.0
description:
  - Lists the active API keys of the account. Revoked keys are not included.
  - The result has no secrets. The service shows a secret only once, when the key is created.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.info
options:
  name:
    description: Name of the keys to return, matched exactly. Several keys can have the same name.
    type: str
  fields:
    description:
      - Names of the fields to return of each key, such as V(id) and V(name). If not set, all fields are returned.
      - C(id) is returned only if it is named.
      - A warning names fields that no key has.
    type: list
    elements: str
  org_id:
    description: Id of the organization whose keys to return. If not set, the keys of the account are returned. No environment variable sets it.
    type: str
    version_added: 2.0.0
  project_id:
    description: Id of a project. Only the keys that are limited to it are returned. Requires O(org_id).
    type: str
    version_added: 2.0.0
seealso:
  - module: clouddb.control.api_key
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List all keys
  clouddb.control.api_key_info:
  register: account

- name: Show keys that were never used
  ansible.builtin.debug:
    msg: "{{ item.name }} (id {{ item.id }}) was created at {{ item.created_at }} and never used"
  loop: "{{ account.api_keys | rejectattr('last_used_at') }}"
  loop_control:
    label: "{{ item.id }}"

- name: List the names of all keys
  clouddb.control.api_key_info:
    fields: [id, name]
"""

RETURN = r"""
api_keys:
  description: Keys with all fields that the service sent, or those in O(fields), sorted by creation time.
  returned: success
  type: list
  elements: dict
  sample:
    - id: 165432
      name: deploy
      created_at: "2026-11-21T09:15:07.123456Z"
      last_used_at: null
      last_used_from_addr: ""
failure:
  description:
    - Machine-readable cause of the failure.
    - R(Kinds of failure, ansible_collections.clouddb.control.docsite.failure_kinds) lists the other kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: unauthorized
"""

from collections.abc import Mapping
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._http.client import Client
from ..module_utils._keys.keys import list_keys
from ..module_utils._keys.scope import SCOPE_OPTIONS, scope_from
from ..module_utils._options import checked_fields


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task, which is the same in check mode."""
    name, scope, fields = params["name"], scope_from(params), checked_fields(params)
    found = [key for key in list_keys(client, scope) if name in (None, key.get("name"))]
    return {"changed": False, "api_keys": fields.reduce(found), "warnings": fields.warnings()}


def main() -> None:
    ControlModule(
        argument_spec={
            "name": {"type": "str"},
            "fields": {"type": "list", "elements": "str"},
            **SCOPE_OPTIONS,
        },
    ).run(run)


if __name__ == "__main__":
    main()
