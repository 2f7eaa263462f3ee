#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates, changes or deletes a branch. Keeps P2, P3 and P9."""

DOCUMENTATION = r"""
module: branch
short_description: Create, change or delete a branch
version_added: 2.0.0
description:
  - Creates a branch with a compute, changes it, or deletes it with its data.
  - Waits until the branch is ready and its compute has started.
  - If a branch of this name is being deleted, the task waits until it is gone. If the creation of a branch has failed, each run fails with the error
    of that operation until you delete the branch.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - clouddb.control.resource
  - clouddb.control.resource.state
  - clouddb.control.resource.project
  - clouddb.control.organization
  - clouddb.control.wait
options:
  name:
    description: Name of the branch. Required unless O(name_pattern) is set. With O(state=recovered), its id can be set instead, which selects one of
      several deleted branches of a name.
    type: str
  name_pattern:
    description:
      - Pattern of the names of the branches to delete, such as V(pr-*), with V(*), V(?) or V([]) as in a shell. Instead of O(name), with O(state=absent).
      - The default branch, the root branch that the project was created with, protected branches and branches that others were created from are
        never deleted.
      - Branches that were created from another one that matches are deleted before it. Each branch is looked at again immediately before it is
        deleted. It stays if it was renamed, protected or made the default branch meanwhile, and the task warns.
      - If a branch cannot be deleted, the task goes on with the others, and fails at the end. RV(failure) has the branches that are left in
        C(remaining), and RV(branches) those that were deleted.
      - If no branch matches, the task warns.
    type: str
  parent:
    description: Id or name of the branch to create the branch from. If not set, the project's default branch. It cannot be changed later.
    type: str
  expires_at:
    description:
      - Time at which the service deletes the branch, such as V(2026-12-24T00:00:00Z), or how long it keeps the branch from now on, such as V(7d).
      - A duration sets the time of a new branch, or of one that has none. A branch that has one keeps it, so that the next run changes nothing.
      - V(never) removes it.
      - It must be in the future, and at most 30 days ahead. A time without an offset from UTC, or a date alone, is refused. If not set, it stays as it
        is.
    type: raw
  new_name:
    description:
      - New name of the branch O(name), which must exist. If only a branch of the new name exists, it has been renamed, and nothing changes.
    type: str
    version_added: 3.0.0
  protected:
    description: Whether the branch is protected from deletion. If not set, it stays as it is.
    type: bool
  compute:
    description:
      - Whether to create the branch with a compute of type C(read_write), which connections need. It matters for a new branch only.
      - M(clouddb.control.compute) changes its size, or creates it later.
    type: bool
    default: true
  from_timestamp:
    description:
      - Time of the data of O(parent) that a new branch starts with, for example V(2026-12-24T00:00:00Z), or its age, such as V(2h). If not set, the
        present.
      - A time without an offset from UTC, or a date alone, is refused.
      - It matters for a new branch only.
    type: raw
  from_lsn:
    description: Log sequence number of the data of O(parent) that a new branch starts with, instead of O(from_timestamp).
    type: str
  schema_only:
    description: Whether a new branch has the schema of O(parent) only, without its data.
    type: bool
    default: false
  state:
    description:
      - Whether the branch should exist.
      - V(recovered) restores a branch that was deleted, within the days for which the service keeps it, with its data and computes. It no longer
        expires. A branch that exists stays as it is. Other options of the branch are not applied.
      - The service documents the recovery of branches as a preview, which is not available to all accounts.
    type: str
    choices: [present, absent, recovered]
    default: present
  backup_schedule:
    description:
      - When the service takes snapshots of the branch by itself, which must be a root branch. An empty list ends the schedule. If not set, it stays
        as it is. By the service's documentation, it requires a paid plan.
      - Entries are compared in order, each by the fields that are set.
    type: list
    elements: dict
    version_added: 3.0.0
    suboptions:
      frequency:
        description: How often a snapshot is taken.
        type: str
        required: true
        choices: [daily, weekly, monthly]
      hour:
        description: Hour of the day in UTC, V(0) to V(23).
        type: int
        required: true
      day:
        description: Day of the week, V(1) for Monday to V(7), or of the month, V(1) to V(31). Required unless the schedule is daily.
        type: int
      retention:
        description: How long a snapshot is kept, in seconds or with a unit, such as V(7d), from one hour to 35 days. If not set, the service keeps it for
          35 days.
        type: raw
  default:
    description: Set to V(true) to make the branch the default branch of the project. If not set, that stays as it is.
    type: bool
    choices: [true]
  older_than:
    description: Minimum age of the branches that O(name_pattern) deletes, in seconds or with a unit, such as V(24h). If not set, V(7d), or V(0) with
      O(unused_for). Ages are by the service's clock. If its responses have no C(Date) header, nothing is deleted for its age, and the task fails.
    type: raw
  unused_for:
    description:
      - Minimum time since the last activity of the computes of the branches that O(name_pattern) deletes, in seconds or with a unit, such as V(48h).
      - A branch without a known activity counts as used when it was created.
    type: raw
    version_added: 3.0.0
  keep:
    description:
      - List of names or patterns of branches that O(name_pattern) does not delete, such as those of open pull requests. It may be empty.
      - Names are compared without white space at their ends. Anything but a list of texts is refused, so that a variable without a value deletes nothing.
    type: raw
    version_added: 3.0.0
  max_deletions:
    description:
      - Maximum number of branches that O(name_pattern) deletes. If more match, the task warns.
      - It is the maximum of a task on one host. On several hosts, set C(run_once).
    type: int
    default: 10
seealso:
  - module: clouddb.control.branch_info
  - module: clouddb.control.branch_restore
  - module: clouddb.control.snapshot
  - module: clouddb.control.compute
  - module: clouddb.control.database
  - module: clouddb.control.database_user
  - module: clouddb.control.connection_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a branch for a pull request
  clouddb.control.branch:
    project: shop
    name: pr-42
    expires_at: 7d
  register: preview

- name: Protect the branch that staging uses
  clouddb.control.branch:
    project: shop
    name: staging
    parent: main
    protected: true

- name: Create a branch with the data of twelve hours ago, without a compute
  clouddb.control.branch:
    project: shop
    name: earlier
    from_timestamp: 12h
    compute: false

- name: Create a branch with the schema of main, without its data
  clouddb.control.branch:
    project: shop
    name: empty
    parent: main
    schema_only: true

- name: Make a branch the default branch of the project
  clouddb.control.branch:
    project: shop
    name: next
    default: true

- name: Keep a branch that would expire, under a name of its own
  clouddb.control.branch:
    project: shop
    name: pr-42
    new_name: demo
    expires_at: never

- name: Take a snapshot each night, and keep it for two weeks
  clouddb.control.branch:
    project: shop
    name: main
    backup_schedule:
      - frequency: daily
        hour: 3
        retention: 14d

- name: Recover a branch that was deleted by mistake
  clouddb.control.branch:
    project: shop
    name: pr-42
    state: recovered

- name: Delete the branch of a closed pull request
  clouddb.control.branch:
    project: shop
    name: pr-42
    state: absent

- name: Delete the branches of pull requests that were forgotten
  clouddb.control.branch:
    project: shop
    name_pattern: pr-*
    state: absent
    older_than: 7d
  run_once: true

- name: Delete the branches that nobody has used for two days, except those of open pull requests
  clouddb.control.branch:
    project: shop
    name_pattern: pr-*
    state: absent
    unused_for: 2d
    keep: [pr-41, pr-42]
  run_once: true
"""

RETURN = r"""
branch:
  description: The branch as it is when the task ends, with all fields that the service sent. V(null) after it was deleted.
  returned: success, and when the wait failed
  type: dict
  sample:
    id: br-small-term-683261
    project_id: wispy-lake-12345678
    parent_id: br-autumn-art-204118
    name: pr-42
    default: false
    protected: false
    current_state: ready
branches:
  description: The branches that were deleted, in this order, or would be in check mode.
  returned: when O(name_pattern) is set
  type: list
  elements: dict
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

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Optional, Union

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import Client
from ..module_utils._options import integer, require_trimmed
from ..module_utils._patterns import is_pattern
from ..module_utils._projects import PROJECT_OPTIONS
from ..module_utils._resources.declared import NEVER, RECOVERABLE, STATE_OPTIONS, declare
from ..module_utils._resources.kinds import BRANCH, SCHEMA_ONLY
from ..module_utils._resources.sweep import sweep
from ..module_utils._timestamps import moment, whole_seconds

# The fields of a backup schedule, as the service calls them.
SCHEDULE_OPTIONS: dict[str, dict[str, Any]] = {
    "frequency": {"type": "str", "required": True, "choices": ["daily", "weekly", "monthly"]},
    "hour": {"type": "int", "required": True},
    "day": {"type": "int"},
    "retention": {"type": "raw"},
}

# As the service's documentation bounds them, and the days of a week and of a month.
SCHEDULE_BOUNDS = {"hour": (0, 23), "day": (1, 31), "retention": (3600, 35 * 86400)}
DAYS_OF_A_WEEK = (1, 7)


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    if params["name_pattern"] is not None:
        if params["state"] != "absent":
            raise InvalidOption(
                "name_pattern", "requires state: absent. To create, change or recover a branch, set name."
            )
        return sweep(params, client, check_mode)
    for option in ("older_than", "unused_for", "keep"):
        if params[option] is not None:
            raise InvalidOption(option, "requires name_pattern, such as pr-*, and state: absent.")
    require_trimmed(params, "new_name")
    if params["new_name"] is not None and params["state"] != "present":
        raise InvalidOption(
            "new_name", "requires state: present. To delete or recover the branch, set its present name."
        )
    fields = {
        "expires_at": _expiration(params),
        "from_timestamp": moment(params, "from_timestamp", needs_offset=True),
        "init_source": SCHEMA_ONLY if params["schema_only"] else None,
        "backup_schedule": _schedule(params["backup_schedule"]),
    }
    result = declare(BRANCH, {**params, **fields}, client, check_mode)
    if params["state"] == "absent" and not result["changed"] and is_pattern(params["name"]):
        problem = f"there is no branch '{params['name']}', and a name is no pattern. To delete the branches that match it, set name_pattern."
        result["warnings"].append(f"name: {problem}")
    return result


def _schedule(items: Optional[Sequence[Mapping[str, Any]]]) -> Optional[list[dict[str, Any]]]:
    """The option C(backup_schedule) as the service takes it. Raises InvalidOption."""
    schedule = []
    for item in items or ():
        try:
            retention = whole_seconds(item, "retention")
            bounds = {**SCHEDULE_BOUNDS, **({"day": DAYS_OF_A_WEEK} if item["frequency"] == "weekly" else {})}
            for field, (least, most) in bounds.items():
                integer({**item, "retention": retention}, field, least, most)
        except InvalidOption as error:
            raise InvalidOption("backup_schedule", str(error)) from None
        fields = {**item, "retention": None, "retention_seconds": retention}
        schedule.append({field: value for field, value in fields.items() if value is not None})
    return None if items is None else schedule


def _expiration(params: Mapping[str, Any]) -> Union[datetime, timedelta, str, None]:
    """The time or the age in C(expires_at), NEVER, or None. Raises InvalidOption."""
    if params["expires_at"] == NEVER:
        return NEVER
    value = moment(params, "expires_at", needs_offset=True)
    longest = BRANCH.longest_life or timedelta.max
    if isinstance(value, timedelta) and not timedelta(0) < value <= longest and params["state"] == "present":
        raise InvalidOption("expires_at", f"must be in the future, and at most {longest.days} days ahead")
    return value


def main() -> None:
    ControlModule(
        argument_spec={
            "name": {"type": "str"},
            "new_name": {"type": "str"},
            "name_pattern": {"type": "str"},
            "parent": {"type": "str"},
            "expires_at": {"type": "raw"},
            "protected": {"type": "bool"},
            "compute": {"type": "bool", "default": True},
            "from_timestamp": {"type": "raw"},
            "from_lsn": {"type": "str"},
            "schema_only": {"type": "bool", "default": False},
            "default": {"type": "bool", "choices": [True]},
            "backup_schedule": {
                "type": "list",
                "elements": "dict",
                "options": SCHEDULE_OPTIONS,
                "required_if": [("frequency", each, ["day"]) for each in ("weekly", "monthly")],
            },
            "older_than": {"type": "raw"},
            "unused_for": {"type": "raw"},
            "keep": {"type": "raw"},
            "max_deletions": {"type": "int", "default": 10},
            **PROJECT_OPTIONS,
            **STATE_OPTIONS,
            **RECOVERABLE,
        },
        mutually_exclusive=[("name", "name_pattern"), ("new_name", "name_pattern"), ("from_timestamp", "from_lsn")],
        required_one_of=[("name", "name_pattern")],
    ).run(run)


if __name__ == "__main__":
    main()
