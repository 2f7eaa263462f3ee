#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists operations of the control plane."""

from __future__ import annotations

DOCUMENTATION = r"""
module: operation_info
short_description: List operations of the control plane
version_added: 1.0.0
description:
  - Lists operations of one project, or of all projects of the account, newest first, with a summary.
  - Fetches only the pages that the options need. If a page cannot be fetched, the task fails.
author:
  - clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.info
options:
  project_id:
    description:
      - Project whose operations to list. If not set, the operations of all projects of the account are listed.
    type: str
  operation_id:
    description:
      - Id of the only operation to return. The list is empty if the project has no such operation.
      - Requires O(project_id), and cannot be combined with the options that filter operations.
    type: str
  status:
    description:
      - Statuses of the operations to return, such as V(scheduling), V(running), V(finished) or V(failed).
    type: list
    elements: str
  action:
    description:
      - Actions of the operations to return, such as V(create_branch) or V(start_compute).
    type: list
    elements: str
  branch_id:
    description:
      - Branch of the operations to return.
    type: str
  endpoint_id:
    description:
      - Compute of the operations to return.
    type: str
  created_after:
    description:
      - Earliest creation time of the operations to return. Either an ISO 8601 timestamp (UTC if it has no offset), or an age by the
        service's clock such as V(90s), V(30m), V(24h), V(7d) or V(2w).
    type: str
  max_results:
    description:
      - Maximum number of operations to return, newest first.
    type: int
  page_size:
    description:
      - Number of operations to request per page.
    type: int
    default: 100
  workers:
    description:
      - Maximum number of projects to list in parallel when O(project_id) is not set, from 1 to 32.
    type: int
    default: 4
seealso:
  - module: clouddb.control.operation_wait
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List the operations of the account that failed during the last day
  clouddb.control.operation_info:
    status: [failed]
    created_after: 24h
  register: failed

- name: Show them
  ansible.builtin.debug:
    msg: "{{ item.project_id }}: {{ item.action }} failed at {{ item.updated_at }}"
  loop: "{{ failed.operations }}"
  loop_control:
    label: "{{ item.id }}"

- name: List the ten newest operations of a project
  clouddb.control.operation_info:
    project_id: wispy-lake-12345678
    max_results: 10

- name: Get one operation
  clouddb.control.operation_info:
    project_id: wispy-lake-12345678
    operation_id: a07f8772-1877-4da9-a939-3a3ae62d1d8d
"""

RETURN = r"""
operations:
  description: Operations, newest first, with all fields that the service sent.
  returned: success
  type: list
  elements: dict
  sample:
    - id: a07f8772-1877-4da9-a939-3a3ae62d1d8d
      project_id: wispy-lake-12345678
      branch_id: br-small-term-683261
      endpoint_id: ep-square-glade-875320
      action: start_compute
      status: finished
      failures_count: 0
      created_at: "2026-11-21T09:15:07.123456Z"
      updated_at: "2026-11-21T09:15:08.654321Z"
summary:
  description: Numbers of the returned operations.
  returned: success
  type: dict
  contains:
    total:
      description: Number of operations.
      type: int
      returned: success
      sample: 12
    by_status:
      description: Number of operations by status.
      type: dict
      returned: success
      sample:
        finished: 11
        failed: 1
    by_action:
      description: Number of operations by action.
      type: dict
      returned: success
      sample:
        create_branch: 4
        start_compute: 8
failure:
  description: Machine-readable cause of the failure. C(status), C(message), C(code) and C(request_id) are those of the response.
  returned: failure
  type: dict
  sample:
    kind: not_found
    method: GET
    path: /projects/wispy-lake-12345678/operations
    attempts: 1
    status: 404
    message: project not found
    request_id: 3f1c5a52-6c0e-4b2f-9e57-0e2b40c54a0c
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._http.client import MAX_WORKERS, Client
from ..module_utils._module import connection_argument_spec, run_module
from ..module_utils._operations.account import list_account_operations
from ..module_utils._operations.api import PAGE_SIZE, Selection, find_operation, list_operations, summary
from ..module_utils._options import identifier, integer, moment, not_blank


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """The task's result; it is the same in check mode."""
    project_id, operation_id = identifier(params, "project_id"), identifier(params, "operation_id")
    selection = Selection(
        statuses=tuple(not_blank(params, "status") or ()),
        actions=tuple(not_blank(params, "action") or ()),
        branch_id=identifier(params, "branch_id"),
        endpoint_id=identifier(params, "endpoint_id"),
        created_after=moment(params, "created_after"),
        max_results=integer(params, "max_results", 1),
    )
    page_size, workers = integer(params, "page_size", 1), integer(params, "workers", 1, MAX_WORKERS)
    warnings: list[str] = []
    if project_id is None:
        operations, warnings = list_account_operations(client, selection, page_size, workers)
    elif operation_id is None:
        operations = list_operations(client, project_id, selection, page_size)
    else:
        operations = find_operation(client, project_id, operation_id)
    return {"changed": False, "operations": operations, "summary": summary(operations), "warnings": warnings}


def main() -> None:
    module = AnsibleModule(
        argument_spec=connection_argument_spec(
            project_id={"type": "str"},
            operation_id={"type": "str"},
            status={"type": "list", "elements": "str"},
            action={"type": "list", "elements": "str"},
            branch_id={"type": "str"},
            endpoint_id={"type": "str"},
            created_after={"type": "str"},
            max_results={"type": "int"},
            page_size={"type": "int", "default": PAGE_SIZE},
            workers={"type": "int", "default": 4},
        ),
        required_by={"operation_id": "project_id"},
        mutually_exclusive=[
            ("operation_id", option)
            for option in ("status", "action", "branch_id", "endpoint_id", "created_after", "max_results")
        ],
        supports_check_mode=True,
    )
    run_module(module, run)


if __name__ == "__main__":
    main()
