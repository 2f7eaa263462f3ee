#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates, changes or deletes a project. Keeps P2, P3 and P9."""

DOCUMENTATION = r"""
module: project
short_description: Create, change or delete a project
version_added: 2.0.0
description: Creates a project with its default branch, compute, database and owner, changes it, or deletes it with all its data.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.organization
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - clouddb.control.resource
  - clouddb.control.resource.state
  - clouddb.control.wait
options:
  name:
    description:
      - Name of the project. The task fails if several projects have it.
      - With O(id), the new name of the project.
      - One of O(name) and O(id) is required.
    type: str
  id:
    description: Id of an existing project to change or delete, in any organization.
    type: str
  region_id:
    description: Region of a new project, for example V(aws-eu-central-1). If not set, the service decides. It cannot be changed later.
    type: str
  pg_version:
    description: Major Postgres version of a new project. If not set, the service decides. It cannot be changed later.
    type: int
  history_retention:
    description: How long the service keeps the history of the data, in seconds or with a unit, such as V(7d). If not set, it stays as it is.
    type: raw
  settings:
    description:
      - Settings of the project, as the service's API has them, such as C(quota), C(allowed_ips) or C(maintenance_window).
      - Only the fields that are given are compared and changed, at any depth. Lists are compared in full.
    type: dict
notes:
  - The module sends the requests of the API document that Neon publishes.
seealso:
  - module: clouddb.control.project_info
  - module: clouddb.control.branch
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a project that keeps a week of history
  clouddb.control.project:
    name: shop
    region_id: aws-eu-central-1
    pg_version: 17
    history_retention: 7d
  register: shop

- name: Limit the compute time of a project, and the addresses that may connect
  clouddb.control.project:
    name: shop
    settings:
      quota:
        active_time_seconds: 360000
      allowed_ips:
        ips: [192.0.2.0/24]
        protected_branches_only: true

- name: Rename a project
  clouddb.control.project:
    id: "{{ shop.project.id }}"
    name: web-shop

- name: Delete a project with all its data
  clouddb.control.project:
    name: old-shop
    state: absent
"""

RETURN = r"""
project:
  description: The project as it is when the task ends, with all fields that the service sent. V(null) after it was deleted.
  returned: success, and when the wait failed
  type: dict
  sample:
    id: wispy-lake-12345678
    name: shop
    region_id: aws-eu-central-1
    pg_version: 17
    history_retention_seconds: 604800
operations:
  description: Last known state of each operation that was waited for, with all fields that the service sent. See
    RV(clouddb.control.operation_info#module:operations).
  returned: success, and when the wait failed
  type: list
  elements: dict
elapsed:
  description: Duration of the task, in seconds.
  returned: success, and when the wait failed
  type: float
failed_ids:
  description: Ids of the failed operations.
  returned: when the wait failed
  type: list
  elements: str
pending_ids:
  description: Ids of the unfinished operations.
  returned: when the wait failed
  type: list
  elements: str
failure:
  description: Machine-readable cause of the failure. R(Kinds of failure,
    ansible_collections.clouddb.control.docsite.failure_kinds) lists the kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: wait_failed
"""

from collections.abc import Mapping
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._http.client import Client
from ..module_utils._options import identifier
from ..module_utils._projects import ORGANIZATION_OPTIONS
from ..module_utils._resources.declared import STATE_OPTIONS, declare
from ..module_utils._resources.kinds import PROJECT
from ..module_utils._timestamps import duration


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    identifier(params, "id")
    retention = params["history_retention"]
    seconds = None if retention is None else int(duration(params, "history_retention"))
    # A project with an id need not be in the organization that CLOUDDB_ORG_ID may set.
    org_id = None if params["id"] else params["org_id"]
    return declare(PROJECT, {**params, "history_retention": seconds, "org_id": org_id}, client, check_mode)


def main() -> None:
    ControlModule(
        argument_spec={
            "name": {"type": "str"},
            "id": {"type": "str"},
            "region_id": {"type": "str"},
            "pg_version": {"type": "int"},
            "history_retention": {"type": "raw"},
            "settings": {"type": "dict"},
            **ORGANIZATION_OPTIONS,
            **STATE_OPTIONS,
        },
        required_one_of=[("name", "id")],
    ).run(run)


if __name__ == "__main__":
    main()
