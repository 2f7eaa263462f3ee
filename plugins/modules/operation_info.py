#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists operations of the service. Keeps P1, P9 and P12."""

DOCUMENTATION = r"""
module: operation_info
short_description: List the operations of a project or of the account
version_added: 1.0.0
description:
  - Lists operations of one project, or of all projects of the account, newest first, with a summary.
  - Fetches only the pages that the options need. If a page cannot be fetched, the task fails.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.organization
  - clouddb.control.attributes
  - clouddb.control.attributes.info
attributes:
  check_mode:
    details:
      - If an id or O(project) is V(null), or there is no such O(project), an earlier task would create it. It has no operations yet.
options:
  project:
    description:
      - Id or name of the project whose operations to list. If it fits several projects, the task fails. A value in the form of an id, such as
        V(wispy-lake-12345678), is taken for the id if there is a project with it.
      - If neither this nor O(project_id) nor O(project_ids) is set, the operations of all projects of the account are listed.
    type: str
    version_added: 2.0.0
  project_id:
    description: Id of the project, instead of O(project). It saves the request that looks up O(project).
    type: str
  project_ids:
    description:
      - Ids of the projects whose operations to list, such as those that an earlier task has listed. It saves the list of the account's projects.
      - The operations of a project that does not exist are missing, as RV(unavailable_project_ids) and a warning say. With an empty list there are
        none.
    type: list
    elements: str
    version_added: 3.0.0
  query:
    description:
      - Additional query parameters for the list of projects, as far as the service supports them, such as C(search).
      - Values are strings, numbers, or lists of them.
      - Cannot be combined with O(project_id) and O(project_ids), with which no projects are listed.
    type: dict
    version_added: 2.0.0
  operation_id:
    description:
      - Id of the operation to return, or a list of ids. Operations that the project does not have are left out.
      - Requires O(project) or O(project_id), and cannot be combined with the options that filter operations.
    type: list
    elements: str
  status:
    description:
      - Statuses of the operations to return, such as V(scheduling), V(running), V(finished) or V(failed).
      - V(unsuccessful) stands for all statuses that count as failed in M(clouddb.control.operation_wait).
      - A misspelled status is an error. For any other status that is unknown to this collection, the task warns.
    type: list
    elements: str
  action:
    description:
      - Actions of the operations to return, such as V(create_branch) or V(start_compute).
      - A misspelled action is an error. For any other action that is unknown to this collection, the task warns.
    type: list
    elements: str
  branch_id:
    description: Id of the branch of the operations to return.
    type: str
  endpoint_id:
    description: Id of the compute of the operations to return.
    type: str
  created_after:
    description: Earliest creation time of the operations to return. Either an ISO 8601 timestamp (UTC if it has no offset), or an age by the
      service's clock, in seconds or with a unit, such as V(24h).
    type: raw
  updated_after:
    description:
      - Earliest time of the last update of the operations to return, as a timestamp or an age like O(created_after). This includes an operation
        that was created two days ago and has failed now.
      - The service lists operations by their creation, so all pages are fetched. O(created_after) bounds them.
    type: raw
    version_added: 2.0.0
  max_results:
    description: Maximum number of operations to return, newest first.
    type: int
  page_size:
    description: Maximum number of operations in a page. If not set, the largest that the service takes.
    type: int
  workers:
    description: Number of projects to list in parallel when there are several, or of operations to fetch in parallel when O(operation_id) has
      several, from 1 to 32.
    type: int
    default: 4
  fields:
    description:
      - Names of the fields to return of each operation, such as V(id) and V(status). If not set, all fields are returned.
      - C(id) is returned only if it is named. RV(summary) does not depend on this option.
      - A warning names fields that no operation has, except C(error) and C(endpoint_id), which operations may lack.
    type: list
    elements: str
  summary_only:
    description: Whether to return only RV(summary). Memory then does not grow with the number of operations. Cannot be combined with O(fields) and
      O(max_results).
    type: bool
    default: false
seealso:
  - module: clouddb.control.operation_wait
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List the operations of the account that failed during the last day, even those that began up to a week ago
  clouddb.control.operation_info:
    status: unsuccessful
    updated_after: 24h
    created_after: 7d
  register: failed

- name: List the ten newest operations of a project
  clouddb.control.operation_info:
    project: shop
    max_results: 10

- name: Count the operations of an organization by status and action
  clouddb.control.operation_info:
    org_id: org-sparkling-star-12345678
    created_after: 30d
    summary_only: true
  register: account

- name: Get one operation
  clouddb.control.operation_info:
    project_id: wispy-lake-12345678
    operation_id: a07f8772-1877-4da9-a939-3a3ae62d1d8d
"""

RETURN = r"""
operations:
  description:
    - Operations, newest first, with all fields that the service sent, or those in O(fields).
    - C(endpoint_id) is set if the operation has a compute. A failed operation has the service's error text in C(error), if it sent one.
  returned: success, unless O(summary_only=true)
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
  description: Number of returned operations by status and action. With O(summary_only=true), of all operations that match the options.
  returned: success
  type: dict
  sample:
    total: 12
    by_status:
      finished: 11
      failed: 1
    by_action:
      create_branch: 4
      start_compute: 8
unavailable_project_ids:
  description: Ids of projects of the account whose operations could not be listed. If there are any, the task also warns about them.
  returned: success
  type: list
  elements: str
  sample: []
  version_added: 3.0.0
failure:
  description: Machine-readable cause of the failure. R(Kinds of failure,
    ansible_collections.clouddb.control.docsite.failure_kinds) lists the kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: not_found
"""

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any, Callable, TypeVar

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import MAX_WORKERS, Client
from ..module_utils._operations.operations import (
    OPTIONAL_FIELDS,
    Operation,
    Selection,
    Summary,
    count_operations,
    find_operations,
    list_operations,
    map_account,
    newest_first,
    summary,
    summed,
)
from ..module_utils._operations.status import selected_actions, selected_statuses
from ..module_utils._options import NOT_CREATED_ID, Fields, checked_fields, identifier, integer
from ..module_utils._projects import ORGANIZATION_OPTIONS, checked_query, project_id_from
from ..module_utils._timestamps import moment

Value = TypeVar("Value")
# The options that cannot be combined with operation_id.
FILTERS = ("status", "action", "branch_id", "endpoint_id", "created_after", "updated_after", "max_results")


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """The task's result; it is the same in check mode."""
    fields, query, operation_ids = _fields(params), checked_query(params), identifier(params, "operation_id")
    (selection, warnings), page_size = _selection(params), integer(params, "page_size", 1)
    if page_size is None and selection == Selection(max_results=selection.max_results):
        page_size = selection.max_results  # up to which no page has more than is needed
    workers = integer(params, "workers", 1, MAX_WORKERS)
    project_id, project_ids = identifier(params, "project_id"), identifier(params, "project_ids")
    if params["project"] is not None:
        project_id = project_id_from(params, client, may_be_missing=check_mode)
    if operation_ids is not None and project_id is None:
        raise InvalidOption("project", "is missing. Set project or project_id to that of operation_id.")

    def in_projects(function: Callable[[str], Value]) -> tuple[list[Value], list[str], list[str]]:
        if project_id is not None:
            return [function(project_id)], [], []
        ids = None if project_ids is None else [each for each in dict.fromkeys(project_ids) if each != NOT_CREATED_ID]
        return map_account(client, function, workers, query, ids)

    operations: list[Operation] = []
    counts: list[Summary] = []
    unavailable: list[str] = []
    missing: list[str] = []
    if NOT_CREATED_ID in (project_id, selection.branch_id, selection.endpoint_id):
        pass  # what an earlier task would create has no operations yet
    elif operation_ids is not None:
        operations = find_operations(client, project_id, operation_ids, workers)
    elif params["summary_only"]:
        counts, unavailable, missing = in_projects(
            partial(count_operations, client, selection=selection, page_size=page_size)
        )
    else:
        list_of = partial(list_operations, client, selection=selection, page_size=page_size, fields=fields)
        lists, unavailable, missing = in_projects(list_of)
        operations = newest_first(chain.from_iterable(lists), selection.max_results)
    return {
        "changed": False,
        **({} if params["summary_only"] else {"operations": fields.reduce(operations)}),
        "summary": summed(counts or [summary(operations)]),
        "unavailable_project_ids": unavailable,
        "warnings": warnings + missing + fields.warnings(),
    }


def _selection(params: Mapping[str, Any]) -> tuple[Selection, list[str]]:
    """The operations to return, and warnings about unknown values."""
    statuses, unknown_statuses = selected_statuses(params, "status")
    actions, unknown_actions = selected_actions(params, "action")
    selection = Selection(
        statuses=statuses,
        actions=actions,
        branch_id=identifier(params, "branch_id"),
        endpoint_id=identifier(params, "endpoint_id"),
        created_after=moment(params, "created_after"),
        max_results=integer(params, "max_results", 1),
        updated_after=moment(params, "updated_after"),
    )
    return selection, unknown_statuses + unknown_actions


def _fields(params: Mapping[str, Any]) -> Fields:
    for option in ("fields", "max_results") if params["summary_only"] else ():
        if params[option] is not None:
            raise InvalidOption(option, "cannot be combined with summary_only, which returns no operations")
    return checked_fields(params, OPTIONAL_FIELDS)


def main() -> None:
    ControlModule(
        argument_spec={
            "project": {"type": "str"},
            "project_id": {"type": "str"},
            "project_ids": {"type": "list", "elements": "str"},
            **ORGANIZATION_OPTIONS,
            "query": {"type": "dict"},
            "operation_id": {"type": "list", "elements": "str"},
            "status": {"type": "list", "elements": "str"},
            "action": {"type": "list", "elements": "str"},
            "branch_id": {"type": "str"},
            "endpoint_id": {"type": "str"},
            "created_after": {"type": "raw"},
            "updated_after": {"type": "raw"},
            "max_results": {"type": "int"},
            "page_size": {"type": "int"},
            "workers": {"type": "int", "default": 4},
            "fields": {"type": "list", "elements": "str"},
            "summary_only": {"type": "bool", "default": False},
        },
        mutually_exclusive=[
            ("project", "project_id", "project_ids"),
            ("project_id", "query"),
            ("project_ids", "query"),
            *(("operation_id", option) for option in FILTERS),
        ],
    ).run(run)


if __name__ == "__main__":
    main()
