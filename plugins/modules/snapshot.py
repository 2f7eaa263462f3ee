#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes or deletes a snapshot of a branch. Keeps P2, P3 and P9."""

DOCUMENTATION = r"""
module: snapshot
short_description: Take or delete a snapshot of a branch
version_added: 3.0.0
description:
  - Takes a snapshot of a root branch, which stays when the history of the branch is gone, changes when it expires, or deletes it.
  - A snapshot of this name that exists is kept, whatever branch it is of. The service does not show whether it is complete, so if the task fails
    because an operation has failed, delete the snapshot before you run the task again. A name that says when or before what it was taken makes a new
    one each time.
  - If several hosts take a snapshot of one name at the same time, the first one stays. The other hosts delete theirs, and report C(ok) with a warning.
  - M(clouddb.control.branch_restore) restores a snapshot, and O(clouddb.control.branch#module:backup_schedule) has the service take them regularly.
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
    description: Name of the snapshot. The task fails if several snapshots of the project have it.
    type: str
    required: true
  branch:
    description: Id or name of the branch that a new snapshot is of. If not set, the project's default branch. It must be a root branch, one without a
      parent, and must exist even if the snapshot does.
    type: str
  timestamp:
    description:
      - Time of the data of a new snapshot, such as V(2026-12-24T00:00:00Z), or its age, such as V(2h). If not set, the present. It must be in the history
        of the branch.
      - A time without an offset from UTC, or a date alone, is refused.
    type: raw
  lsn:
    description: Log sequence number of the data of a new snapshot, instead of O(timestamp).
    type: str
  expires_at:
    description:
      - Time at which the service deletes the snapshot, such as V(2026-12-24T00:00:00Z), or how long it keeps it from now on, such as V(14d).
      - A duration sets the time of a new snapshot, or of one that has none. A snapshot that has one keeps it, so that the next run changes nothing.
      - V(never) removes it. If not set, it stays as it is.
      - It must be in the future. A time without an offset from UTC, or a date alone, is refused.
    type: raw
seealso:
  - module: clouddb.control.snapshot_info
  - module: clouddb.control.branch_restore
  - module: clouddb.control.branch
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Take a snapshot of the default branch before a release
  clouddb.control.snapshot:
    project: shop
    name: before-release-42
    expires_at: 14d

- name: Take a snapshot of the data as it was two hours ago
  clouddb.control.snapshot:
    project: shop
    branch: main
    name: before-the-mistake
    timestamp: 2h

- name: Delete a snapshot
  clouddb.control.snapshot:
    project: shop
    name: before-release-41
    state: absent
"""

RETURN = r"""
snapshot:
  description: The snapshot as it is when the task ends, with all fields that the service sent. V(null) after it was deleted.
  returned: success, and when the wait failed
  type: dict
  sample:
    id: snap-quiet-dawn-418273
    name: before-release-42
    source_branch_id: br-small-term-683261
    manual: true
    created_at: "2026-11-26T08:30:12.000000Z"
    expires_at: "2026-12-10T08:30:12.000000Z"
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
from ..module_utils._projects import PROJECT_OPTIONS
from ..module_utils._resources.declared import NEVER, STATE_OPTIONS, declare
from ..module_utils._resources.kinds import SNAPSHOT
from ..module_utils._timestamps import moment


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    times = {"timestamp": moment(params, "timestamp", needs_offset=True)}
    if params["expires_at"] != NEVER:
        times["expires_at"] = moment(params, "expires_at", needs_offset=True)
    return declare(SNAPSHOT, {**params, **times}, client, check_mode)


def main() -> None:
    ControlModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "branch": {"type": "str"},
            "timestamp": {"type": "raw"},
            "lsn": {"type": "str"},
            "expires_at": {"type": "raw"},
            **PROJECT_OPTIONS,
            **STATE_OPTIONS,
        },
        mutually_exclusive=[("timestamp", "lsn")],
    ).run(run)


if __name__ == "__main__":
    main()
