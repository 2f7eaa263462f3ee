#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until operations have succeeded. Keeps P3, P4 and P9."""

DOCUMENTATION = r"""
module: operation_wait
short_description: Wait until operations have succeeded
version_added: 1.0.0
description:
  - Waits until all given operations have succeeded. Fails as soon as one of them has failed, or at O(timeout).
  - Takes the operations of a response, or operations of a project by their ids, or all unfinished operations of a project.
  - The statuses V(finished) and V(skipped) count as succeeded; V(failed), V(error) and V(cancelled) count as failed. Any other status is
    treated as unfinished.
  - Transient errors, including rate limits, are retried until O(timeout). Permanent errors, such as 401, 403 or 404, end the wait.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.organization
  - clouddb.control.attributes
  - clouddb.control.attributes.info
  - clouddb.control.wait
attributes:
  check_mode:
    details:
      - In check mode the module polls once. It then fails for failed operations, but not for unfinished ones.
      - If an id or O(project) is V(null), or there is no such O(project), an earlier task would create it. There is nothing to wait for.
options:
  operations:
    description:
      - Operations to wait for, each a dictionary with C(id) and C(project_id), as in the C(operations) of a response. Other keys are ignored.
      - With an empty list here or in O(operation_id), the task returns at once.
    type: list
    elements: dict
  project:
    description:
      - Id or name of the project of the operations in O(operation_id). If it fits several projects, the task fails. A value in the form of an id, such
        as V(wispy-lake-12345678), is taken for the id if there is a project with it.
      - Without O(operation_id), the module waits for all operations of the project that are unfinished when the task starts and were created within
        O(lookback). Operations that have failed before are ignored.
    type: str
    version_added: 2.0.0
  project_id:
    description: Id of the project, instead of O(project). It saves the request that looks up O(project).
    type: str
  operation_id:
    description: Id of the operation to wait for, or a list of ids. Requires O(project) or O(project_id).
    type: list
    elements: str
  lookback:
    description:
      - How far back to look for unfinished operations when O(operation_id) is not set, measured with the service's clock, in seconds or with a unit, such
        as V(24h).
      - V(0) includes the complete history of the project.
    type: raw
    default: 86400
  workers:
    description: Number of projects to poll in parallel, from 1 to 32.
    type: int
    default: 4
seealso:
  - module: clouddb.control.operation_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a branch in each project, without waiting for one after the other
  clouddb.control.branch:
    project: "{{ item }}"
    name: preview
    wait: false
  loop: [shop, blog]
  register: created

- name: Wait until all of them exist and their computes have started
  clouddb.control.operation_wait:
    operations: "{{ created.results | map(attribute='operations') | flatten }}"

- name: Wait for an operation by its id
  clouddb.control.operation_wait:
    project_id: wispy-lake-12345678
    operation_id: a07f8772-1877-4da9-a939-3a3ae62d1d8d
    timeout: 10m

- name: Wait for all unfinished operations of a project
  clouddb.control.operation_wait:
    project: shop
"""

RETURN = r"""
operations:
  description:
    - Last known state of each operation, with all fields that the service sent. See RV(clouddb.control.operation_info#module:operations).
    - An operation that could not be polled has only C(id), C(project_id) and a C(status) of V(null).
  returned: success, and when the wait failed
  type: list
  elements: dict
elapsed:
  description: Duration of the wait, in seconds.
  returned: success, and when the wait failed
  type: float
polls:
  description: Number of polls.
  returned: success, and when the wait failed
  type: int
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
  description:
    - Machine-readable cause of the failure. If an error ended the wait, or the last poll met one, C(kind) is that of the error.
    - R(Kinds of failure, ansible_collections.clouddb.control.docsite.failure_kinds) lists the kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: wait_failed
"""

from collections.abc import Mapping
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._clock import Deadline
from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import MAX_WORKERS, Client
from ..module_utils._http.errors import RequestFailed
from ..module_utils._operations.operations import OperationRef
from ..module_utils._operations.wait import LAST_POLL_SECONDS, WAIT_OPTIONS, Wait, wait_options
from ..module_utils._options import NOT_CREATED_ID, identifier, integer
from ..module_utils._projects import ORGANIZATION_OPTIONS, project_id_from
from ..module_utils._timestamps import duration
from ..module_utils._untrusted import is_id


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """The task's result; in check mode after a single poll."""
    wait = Wait(client, wait_options(params, integer(params, "workers", 1, MAX_WORKERS)))
    _set_operations(wait, params, client, check_mode)
    return {"changed": False, **(wait.poll_once() if check_mode else wait.run())}


def _set_operations(wait: Wait, params: Mapping[str, Any], client: Client, check_mode: bool) -> None:
    """Wait for the operations in the options. Raises InvalidOption, and what project_id_from() raises."""
    lookback, operation_ids = duration(params, "lookback"), identifier(params, "operation_id")
    project_id = identifier(params, "project_id")
    if params["operations"] is not None:
        refs = [_operation_ref(position, operation) for position, operation in enumerate(params["operations"])]
        wait.operations = dict.fromkeys(refs)
        return
    if params.get("project") is not None:
        deadline = Deadline.after(client.clock, wait.timeout + LAST_POLL_SECONDS)
        try:
            project_id = project_id_from(params, client.with_deadline(deadline, retries=True), check_mode)
        except RequestFailed as error:
            if error.out_of_time:
                seconds = f"{round(wait.timeout, 1):g} s"
                error.add(after=f"timeout ({seconds}) ended while the project '{params['project']}' was looked up.")
            raise
    if project_id is None:
        raise InvalidOption(
            "project", "is missing. Set project or project_id, or set operations to those of a response."
        )
    if project_id == NOT_CREATED_ID:
        return
    if operation_ids is not None:
        wait.operations = dict.fromkeys(OperationRef(project_id, operation_id) for operation_id in operation_ids)
    else:
        wait.unlisted, wait.lookback = project_id, lookback


def _operation_ref(position: int, operation: Mapping[str, Any]) -> OperationRef:
    for field in ("id", "project_id"):
        if not is_id(operation.get(field)):
            raise InvalidOption(
                "operations",
                f"entry {position} has no valid {field}. Set id and project_id in each entry, as in the operations of a response.",
            )
    return OperationRef(operation["project_id"], operation["id"])


def main() -> None:
    ControlModule(
        argument_spec={
            "operations": {"type": "list", "elements": "dict"},
            "project": {"type": "str"},
            "project_id": {"type": "str"},
            "operation_id": {"type": "list", "elements": "str"},
            "lookback": {"type": "raw", "default": 86400},
            "workers": {"type": "int", "default": 4},
            **ORGANIZATION_OPTIONS,
            **WAIT_OPTIONS,
        },
        mutually_exclusive=[("operations", "project", "project_id"), ("operations", "operation_id")],
    ).run(run)


if __name__ == "__main__":
    main()
