#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the projects of the account. Keeps P1 and P9."""

DOCUMENTATION = r"""
module: project_info
short_description: List the projects of the account
version_added: 1.0.0
description:
  - Lists all projects that the API key can access.
  - The list is complete. Every page is fetched, or the task fails.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.organization
  - clouddb.control.attributes
  - clouddb.control.attributes.info
attributes:
  check_mode:
    details:
      - If O(project_id) is V(null), an earlier task would create the project. No project is returned, unless O(required=true).
      - If O(required=true) and no project matches, an earlier task may create it. The task warns and returns one project whose C(id) is V(null).
options:
  project_id:
    description: Id of the project to return, in one request and with all details, such as the usage of the current period. With O(query), the
      project is returned as in the list.
    type: str
  name:
    description:
      - Name of the projects to return, matched exactly.
      - If the service cannot list all projects, the task fails, because one that is missing may have this name.
    type: str
  region_id:
    description: Region of the projects to return, matched exactly.
    type: str
  page_size:
    description: Maximum number of projects in a page. If not set, the largest that the service takes.
    type: int
  query:
    description:
      - Additional query parameters for the list, as far as the service supports them, such as C(search).
      - Values are strings, numbers, or lists of them.
    type: dict
  required:
    description: Whether the task fails if no project matches. Otherwise, the list is empty.
    type: bool
    default: false
  fields:
    description:
      - Names of the fields to return of each project, such as V(id) and V(name). If not set, all fields are returned.
      - C(id) is returned only if it is named.
      - A warning names fields that no project has.
    type: list
    elements: str
seealso:
  - module: clouddb.control.operation_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List all projects
  clouddb.control.project_info:
  register: account

- name: Get the id of a project that has to exist
  clouddb.control.project_info:
    name: shop
    required: true
    fields: [id]
  register: shop

- name: Search the projects of an organization
  clouddb.control.project_info:
    org_id: org-sparkling-star-12345678
    query:
      search: shop
"""

RETURN = r"""
projects:
  description: Projects with all fields that the service sent, or those in O(fields).
  returned: success
  type: list
  elements: dict
  sample:
    - id: wispy-lake-12345678
      name: shop
      platform_id: aws
      region_id: aws-eu-central-1
      pg_version: 17
      locked: false
      created_at: "2026-03-02T08:30:12.000000Z"
      updated_at: "2026-11-20T17:45:01.000000Z"
base_url:
  description: Address that the list came from, whether O(base_url) or E(CLOUDDB_BASE_URL) set it.
  returned: success
  type: str
  sample: https://control.example.com/api/v2
  version_added: 2.0.0
service_time:
  description: Time at which the task ended, by the clock of the service, in UTC; by the clock of this machine if the service sends none.
  returned: success
  type: str
  sample: "2026-11-21T09:15:07Z"
  version_added: 3.0.0
unavailable_project_ids:
  description: Ids of projects that the service could not include in its list. If there are any, the task also warns about them.
  returned: success
  type: list
  elements: str
  sample: []
failure:
  description:
    - Machine-readable cause of the failure. If no project matches although O(required=true), C(kind) is V(not_found) or, if the list is incomplete,
      V(incomplete_list). C(project_id), C(name), C(region_id) and C(query) describe the missing project. C(unavailable_project_ids) lists those
      that the list lacks.
    - R(Kinds of failure, ansible_collections.clouddb.control.docsite.failure_kinds) lists the other kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: not_found
"""

from collections.abc import Mapping
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._errors import will_fail
from ..module_utils._http.client import Client
from ..module_utils._lists import require_complete
from ..module_utils._options import NOT_CREATED_ID, checked_fields, integer
from ..module_utils._projects import ORGANIZATION_OPTIONS, checked_filters, checked_query, list_projects, no_project


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task; in check mode, with a project that an earlier task would create."""
    filters, query, fields = checked_filters(params), checked_query(params), checked_fields(params)
    found = list_projects(client, filters, query, integer(params, "page_size", 1), fields)
    if filters.name is not None:
        require_complete(found, filters.name)
    projects, warnings = found.items, found.warnings + fields.warnings()
    if params["required"] and not projects:
        asked = {**({"org_id": params["org_id"]} if params["org_id"] else {}), **(params["query"] or {})}
        missing = no_project(found, filters, asked)
        # The id of what does not exist yet cannot be known.
        if not check_mode or filters.project_id not in (None, NOT_CREATED_ID):
            raise missing
        projects = [{"id": None, "name": filters.name, "region_id": filters.region_id}]
        if filters.project_id is None:
            warnings = [will_fail(missing)]
    return {
        "changed": False,
        "base_url": client.connection.base_url,
        "service_time": f"{client.service_now():%Y-%m-%dT%H:%M:%SZ}",
        "projects": projects,
        "unavailable_project_ids": found.unavailable_ids,
        "warnings": warnings,
    }


def main() -> None:
    ControlModule(
        argument_spec={
            "project_id": {"type": "str"},
            "name": {"type": "str"},
            "region_id": {"type": "str"},
            "page_size": {"type": "int"},
            **ORGANIZATION_OPTIONS,
            "query": {"type": "dict"},
            "required": {"type": "bool", "default": False},
            "fields": {"type": "list", "elements": "str"},
        },
    ).run(run)


if __name__ == "__main__":
    main()
