#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates, changes or deletes a database. Keeps P2, P3 and P9."""

DOCUMENTATION = r"""
module: database
short_description: Create, change or delete a database of a branch
version_added: 2.0.0
description: Creates a database on a branch, changes its owner, or deletes it with its data.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - clouddb.control.resource
  - clouddb.control.resource.state
  - clouddb.control.resource.project
  - clouddb.control.organization
  - clouddb.control.resource.branch
  - clouddb.control.wait
options:
  name:
    description: Name of the database.
    type: str
    required: true
  owner:
    description: Name of the user that owns the database, which must exist on the branch. Required with O(state=present).
    type: str
seealso:
  - module: clouddb.control.database_user
  - module: clouddb.control.connection_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a database
  clouddb.control.database:
    project: shop
    branch: pr-42
    name: orders
    owner: orders_app

- name: Delete a database
  clouddb.control.database:
    project: shop
    branch: pr-42
    name: orders
    state: absent
"""

RETURN = r"""
database:
  description: The database as it is when the task ends, with all fields that the service sent. V(null) after it was deleted.
  returned: success, and when the wait failed
  type: dict
  sample:
    id: 8412
    branch_id: br-small-term-683261
    name: orders
    owner_name: orders_app
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

from functools import partial

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._projects import PROJECT_OPTIONS
from ..module_utils._resources.declared import STATE_OPTIONS, declare
from ..module_utils._resources.kinds import DATABASE

run = partial(declare, DATABASE)


def main() -> None:
    ControlModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "branch": {"type": "str"},
            "owner": {"type": "str"},
            **PROJECT_OPTIONS,
            **STATE_OPTIONS,
        },
        required_if=[("state", "present", ["owner"])],
    ).run(run)


if __name__ == "__main__":
    main()
