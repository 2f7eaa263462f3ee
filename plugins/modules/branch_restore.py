#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces the data of a branch by that of its parent, of another branch, or of an earlier time. Keeps P2, P3 and P9."""

DOCUMENTATION = r"""
module: branch_restore
short_description: Reset a branch to its parent, or restore it to an earlier time
version_added: 2.0.0
description:
  - Replaces the data of a branch by that of its parent, of another branch, or of an earlier time. Other clients call the first one a reset from parent.
  - The id of the branch, its computes, and so its connection strings stay, but not the id with O(snapshot). Open connections are interrupted.
  - Each run restores the branch again, and reports C(changed). With O(preserve_as), the next run needs another name, or that branch deleted first.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - clouddb.control.resource
  - clouddb.control.resource.project
  - clouddb.control.organization
  - clouddb.control.wait
options:
  name:
    description: Id or name of the branch to restore.
    type: str
    required: true
  source:
    description:
      - Id or name of the branch to take the data from. If not set, the parent of the branch, or with O(timestamp) or O(lsn) the branch itself.
      - The source becomes the parent of the branch.
    type: str
  timestamp:
    description: Time of the data of O(source), such as V(2026-12-24T00:00:00Z), or its age, such as V(2h). If not set, the present.
      A time without an offset from UTC, or a date alone, is refused.
    type: raw
  lsn:
    description: Log sequence number of the data of O(source), instead of O(timestamp).
    type: str
  snapshot:
    description:
      - Id or name of a snapshot of the project to take the data from, instead of O(source).
      - The service makes a new branch of the snapshot, which takes the name, the computes and so the connection strings, the protection and the
        backup schedule of the branch, but has another id. It keeps the branch under a name of its own, such as C(main (old)), with the branches that
        were created from it. Delete that branch when you no longer need it, because each restore keeps one more root branch. By
        the service's documentation, for up to 24 hours those branches cannot be reset to their parent.
    type: str
    version_added: 3.0.0
  preserve_as:
    description:
      - Name of a new branch that keeps the present data. No branch may have this name already. If not set, the present data is lost.
      - Required to restore a branch from its own history, and if other branches were created from it. Those become branches of the new one, and so
        does the restored branch if it is its own source.
    type: str
notes:
  - After a restore from the branch itself, its parent is the branch O(preserve_as). A later reset needs O(source) to reach the former parent.
seealso:
  - module: clouddb.control.branch
  - module: clouddb.control.snapshot
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Reset the branch of a pull request to its parent
  clouddb.control.branch_restore:
    project: shop
    name: pr-42

- name: Restore the data of two hours ago, and keep the present data
  clouddb.control.branch_restore:
    project: shop
    name: main
    timestamp: 2h
    preserve_as: main-before-restore

- name: Restore the data of a snapshot
  clouddb.control.branch_restore:
    project: shop
    name: main
    snapshot: before-release-42

- name: Copy the present data of another branch
  clouddb.control.branch_restore:
    project: shop
    name: staging
    source: main
"""

RETURN = r"""
branch:
  description: The branch as it is when the task ends, with all fields that the service sent.
  returned: success, and when the wait failed
  type: dict
  sample:
    id: br-small-term-683261
    project_id: wispy-lake-12345678
    parent_id: br-autumn-art-204118
    name: pr-42
    current_state: ready
    last_reset_at: "2026-11-26T08:30:12.000000Z"
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

from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import Client
from ..module_utils._options import require_trimmed
from ..module_utils._projects import PROJECT_OPTIONS
from ..module_utils._resources.declared import ACTION_OPTIONS, declare
from ..module_utils._resources.kinds import BRANCH_RESTORE
from ..module_utils._timestamps import moment


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    require_trimmed(params, "preserve_as")
    timestamp, source = moment(params, "timestamp", needs_offset=True), params["source"]
    is_earlier = timestamp is not None or params["lsn"] is not None
    if source == params["name"] and not is_earlier:
        raise InvalidOption("source", "is the branch itself. Set timestamp or lsn, or another source.")
    if source is None and is_earlier:
        source = params["name"]
    values = {"state": "restored", "timestamp": timestamp, "source": source}
    if params["snapshot"] is not None:
        values = {"state": "snapshot restored", "finalize": True}
    return declare(BRANCH_RESTORE, {**params, **values}, client, check_mode)


def main() -> None:
    ControlModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "source": {"type": "str"},
            "timestamp": {"type": "raw"},
            "lsn": {"type": "str"},
            "preserve_as": {"type": "str"},
            "snapshot": {"type": "str"},
            **PROJECT_OPTIONS,
            **ACTION_OPTIONS,
        },
        ids=["name"],
        mutually_exclusive=[
            ("timestamp", "lsn"),
            *(("snapshot", option) for option in ("source", "timestamp", "lsn", "preserve_as")),
        ],
    ).run(run)


if __name__ == "__main__":
    main()
