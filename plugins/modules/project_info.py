#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the projects of the account."""

from __future__ import annotations

DOCUMENTATION = r"""
module: project_info
short_description: List the projects of the account
version_added: 1.0.0
description:
  - Lists the projects that the API key reaches, all of them, over as many pages as the service has.
  - A page that can't be had fails the task. A partial list is never returned as if it were whole.
author:
  - clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.info
options:
  project_id:
    description:
      - Return only the project of this id.
    type: str
  name:
    description:
      - Return only projects of exactly this name.
    type: str
  region_id:
    description:
      - Return only projects of exactly this region.
    type: str
  page_size:
    description:
      - Number of projects to ask for with each request. If not set, the service decides.
    type: int
  query:
    description:
      - Further query parameters to send, if the service knows any, such as C(org_id) or C(search).
      - Values are strings or numbers, or lists of them.
    type: dict
seealso:
  - module: clouddb.control.operation_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List all projects
  clouddb.control.project_info:
  register: account

- name: Show their names and regions
  ansible.builtin.debug:
    msg: "{{ item.name }} is in {{ item.region_id }}"
  loop: "{{ account.projects }}"
  loop_control:
    label: "{{ item.id }}"

- name: Find a project by its name
  clouddb.control.project_info:
    name: shop
  register: shop

- name: Let the service search within an organization
  clouddb.control.project_info:
    query:
      org_id: org-morning-bread-81040908
      search: shop
"""

RETURN = r"""
projects:
  description: The projects, with all fields that the service sent.
  returned: success
  type: list
  elements: dict
  sample:
    - id: wispy-lake-12345678
      name: shop
      platform_id: aws
      region_id: aws-eu-central-1
      provisioner: k8s-pod
      pg_version: 17
      locked: false
      cpu_used_sec: 1240
      proxy_host: eu-central-1.aws.db.example.com
      branch_logical_size_limit: 204800
      created_at: "2026-03-02T08:30:12.000000Z"
      updated_at: "2026-11-20T17:45:01.000000Z"
unavailable_project_ids:
  description: Ids of projects that the service could not include in its list. There is a warning too, when there are any.
  returned: success
  type: list
  elements: str
  sample: []
failure:
  description: What went wrong, for programs. C(status), C(message), C(code) and C(request_id) are the service's.
  returned: failure
  type: dict
  sample:
    kind: unauthorized
    method: GET
    path: /projects
    attempts: 1
    status: 401
    message: this API key is not valid
    request_id: 3f1c5a52-6c0e-4b2f-9e57-0e2b40c54a0c
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._http.client import Client
from ..module_utils._module import connection_argument_spec, run_module
from ..module_utils._options import integer
from ..module_utils._projects import checked_filters, checked_query, list_projects


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """The task's result; it is the same in check mode."""
    found = list_projects(client, checked_filters(params), checked_query(params), integer(params, "page_size", 1))
    return {
        "changed": False,
        "projects": found.projects,
        "unavailable_project_ids": found.unavailable_ids,
        "warnings": found.warnings(),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec=connection_argument_spec(
            project_id={"type": "str"},
            name={"type": "str"},
            region_id={"type": "str"},
            page_size={"type": "int"},
            query={"type": "dict"},
        ),
        supports_check_mode=True,
    )
    run_module(module, run)


if __name__ == "__main__":
    main()
