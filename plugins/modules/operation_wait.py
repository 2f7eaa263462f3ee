#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until operations have ended."""

from __future__ import annotations

DOCUMENTATION = r"""
module: operation_wait
short_description: Wait until operations have ended
version_added: 1.0.0
description:
  - Waits until all given operations have ended well, by a hard deadline, and fails as soon as one of them has ended badly.
  - The operations are those of a response, or some of a project by their ids, or all of a project that are unfinished.
  - V(finished) and V(skipped) are good ends, V(failed), V(error) and V(cancelled) are bad ones. Any other status is taken as still going.
  - The first looks follow each other quickly, then the pauses grow to O(interval). Several operations of one project share a request.
  - Faults of the network or of the service, the rate limit among them, do not end the wait. Only the deadline does, or an answer that will not
    change, such as 401, 403 or 404.
  - While it waits, the controller shows a line for each change of a status, and one a minute when nothing changes.
author:
  - clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.info
attributes:
  check_mode:
    details:
      - In check mode the module looks once and does not wait. Unfinished operations are no failure then, failed ones are.
options:
  operations:
    description:
      - Operations to wait for, each a dictionary with C(id) and C(project_id), as the C(operations) of a response have them. Further keys are fine.
      - With an empty list there is nothing to wait for, and the task ends at once.
    type: list
    elements: dict
  project_id:
    description:
      - Project of the operations in O(operation_id). Without these, the wait is for all operations of the project that are unfinished at the call
        and not older than O(lookback).
    type: str
  operation_id:
    description:
      - Ids of the operations to wait for. Needs O(project_id).
      - With an empty list there is nothing to wait for, and the task ends at once.
    type: list
    elements: str
  lookback:
    description:
      - How old, in seconds by the service's clock, an unfinished operation may be to be waited for when only O(project_id) is given.
      - V(0) looks through all of the project's history.
    type: float
    default: 86400
  timeout:
    description:
      - Seconds until the task fails if operations are still unfinished. V(0) looks once.
      - The timeout of a single request is O(api_timeout), cut to what is left of this one. O(api_retries) does not matter here, as every look
        is a new try.
    type: float
    default: 300
  interval:
    description:
      - The longest pause between two looks, in seconds.
    type: float
    default: 5
  failed_grace:
    description:
      - How many seconds a V(failed) operation is given to be retried by the platform before it counts as failed.
    type: float
    default: 0
  workers:
    description:
      - How many projects to look at at the same time, at most 32.
    type: int
    default: 4
  progress:
    description:
      - Whether the controller shows how the wait goes. The variable C(clouddb_progress) is the default for all tasks.
      - Nothing is shown in check mode and by tasks with C(async).
    type: bool
  _part:
    description:
      - What the controller hands to the module to be told how the wait goes. Not for playbooks.
    type: dict
seealso:
  - module: clouddb.control.operation_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a branch
  ansible.builtin.uri:
    url: "{{ lookup('ansible.builtin.env', 'CLOUDDB_BASE_URL') }}/projects/{{ project_id }}/branches"
    method: POST
    headers:
      Authorization: Bearer {{ lookup('ansible.builtin.env', 'CLOUDDB_API_KEY') }}
    body_format: json
    body:
      branch:
        name: preview
    status_code: [200, 201]
  register: created

- name: Wait until the branch is there and its compute has started
  clouddb.control.operation_wait:
    operations: "{{ created.json.operations }}"

- name: Wait for two operations by their ids
  clouddb.control.operation_wait:
    project_id: wispy-lake-12345678
    operation_id:
      - a07f8772-1877-4da9-a939-3a3ae62d1d8d
      - d8ac46eb-a757-42b1-9907-f78322ee394e
    timeout: 600

- name: Wait until nothing is going on in a project
  clouddb.control.operation_wait:
    project_id: wispy-lake-12345678

- name: Tell a failure from a timeout
  block:
    - name: Wait, and let the platform retry for a minute
      clouddb.control.operation_wait:
        project_id: wispy-lake-12345678
        failed_grace: 60
      register: waited
  rescue:
    - name: Say what happened
      ansible.builtin.debug:
        msg: "failed: {{ waited.failed_ids }}, still going: {{ waited.pending_ids }}"
"""

RETURN = r"""
operations:
  description:
    - The last known state of each operation, with all fields that the service sent.
    - One that could not be looked at has its C(id) and C(project_id), and a C(status) of V(null).
  returned: success, and when the wait failed
  type: list
  elements: dict
  sample:
    - id: a07f8772-1877-4da9-a939-3a3ae62d1d8d
      project_id: wispy-lake-12345678
      branch_id: br-small-term-683261
      action: create_branch
      status: finished
      failures_count: 0
      created_at: "2026-11-21T09:15:07.123456Z"
      updated_at: "2026-11-21T09:15:08.654321Z"
elapsed:
  description: Seconds that the wait took.
  returned: success, and when the wait failed
  type: float
  sample: 1.914
polls:
  description: How many times the operations were looked at.
  returned: success, and when the wait failed
  type: int
  sample: 5
failed_ids:
  description: Ids of the operations that have ended badly.
  returned: when the wait failed
  type: list
  elements: str
  sample: []
pending_ids:
  description: Ids of the operations that had not ended.
  returned: when the wait failed
  type: list
  elements: str
  sample:
    - a07f8772-1877-4da9-a939-3a3ae62d1d8d
failure:
  description:
    - What went wrong, for programs. C(kind) is V(wait_failed) when an operation failed or the deadline came.
    - C(status), C(message), C(code) and C(request_id) are the service's, when one of its answers was the cause.
  returned: failure
  type: dict
  sample:
    kind: wait_failed
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import MAX_WORKERS, Client
from ..module_utils._module import connection_argument_spec, run_module
from ..module_utils._operations.wait import Limits, Part, Unfinished, Wait
from ..module_utils._operations.wait_state import Target
from ..module_utils._options import integer, is_path_segment, path_segment, seconds


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """The task's result; in check mode after a single look."""
    limits = Limits(
        timeout=seconds(params, "timeout"),
        interval=seconds(params, "interval", zero=False),
        failed_grace=seconds(params, "failed_grace"),
        workers=integer(params, "workers", 1, MAX_WORKERS),
    )
    part = params.get("_part")
    wait = Wait(client, wanted(params), limits, Part(**part) if part else None)
    return {"changed": False, **(wait.once() if check_mode else wait.until_ended())}


def wanted(params: Mapping[str, Any]) -> list[Target] | Unfinished:
    """What to wait for. Raises InvalidOption."""
    lookback = seconds(params, "lookback")
    project_id, operation_ids = path_segment(params, "project_id"), path_segment(params, "operation_id")
    if params["operations"] is not None:
        return [_target(position, operation) for position, operation in enumerate(params["operations"])]
    if operation_ids is not None:
        return [Target(project_id, operation_id) for operation_id in operation_ids]
    return Unfinished(project_id, lookback)


def _target(position: int, operation: Mapping[str, Any]) -> Target:
    for field in ("id", "project_id"):
        if not isinstance(operation.get(field), str) or not is_path_segment(operation[field]):
            raise InvalidOption(
                "operations",
                f"entry {position} has no {field}; each needs id and project_id, as the operations of a response have them",
            )
    return Target(operation["project_id"], operation["id"])


def main() -> None:
    module = AnsibleModule(
        argument_spec=connection_argument_spec(
            operations={"type": "list", "elements": "dict"},
            project_id={"type": "str"},
            operation_id={"type": "list", "elements": "str"},
            lookback={"type": "float", "default": 86400},
            timeout={"type": "float", "default": 300},
            interval={"type": "float", "default": 5},
            failed_grace={"type": "float", "default": 0},
            workers={"type": "int", "default": 4},
            progress={"type": "bool"},
            _part={"type": "dict"},
        ),
        required_one_of=[("operations", "project_id")],
        mutually_exclusive=[("operations", "project_id")],
        required_by={"operation_id": "project_id"},
        supports_check_mode=True,
    )
    run_module(module, run)


if __name__ == "__main__":
    main()
