#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates or deletes a user of the databases of a branch, or resets its password. Keeps P2, P3, P5 and P9."""

DOCUMENTATION = r"""
module: database_user
short_description: Create or delete a database user of a branch, or reset its password
version_added: 2.0.0
description:
  - Creates a user (Postgres role) on a branch, with a password that the service generates, resets this password, or deletes the user.
  - The password is kept out of the result. M(clouddb.control.connection_info) returns it, or writes it to a file.
  - A user that owns a database cannot be deleted. Delete the database, or give it another owner, first.
  - Each task with O(update_password=always) replaces the password. If several hosts use it, set C(run_once), then write the file of each host.
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
    description: Name of the user.
    type: str
    required: true
  update_password:
    description:
      - V(on_create) has the service generate a password when it creates the user.
      - V(always) also resets the password of a user that exists, so that each run reports C(changed). Write the new one to its files with
        M(clouddb.control.connection_info) afterwards. The service closes open connections.
      - Users of other branches keep their passwords, even if these branches were created from this one.
    type: str
    choices: [on_create, always]
    default: on_create
seealso:
  - ref: Replacing the password of a database user <ansible_collections.clouddb.control.docsite.password_rotation>
    description: On several hosts.
  - module: clouddb.control.database
  - module: clouddb.control.connection_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a user
  clouddb.control.database_user:
    project: shop
    branch: pr-42
    name: orders_app

- name: Replace the password of a user, once for all hosts of the play
  clouddb.control.database_user:
    project: shop
    name: orders_app
    update_password: always
  run_once: true

- name: Write the new connection string to the file of the application on each host
  clouddb.control.connection_info:
    project: shop
    database: orders
    user: orders_app
    dest: /etc/myapp/database.url

- name: Delete a user
  clouddb.control.database_user:
    project: shop
    branch: pr-42
    name: orders_app
    state: absent
"""

RETURN = r"""
database_user:
  description: The user as it is when the task ends, with all fields that the service sent, without its password. V(null) after it was deleted.
  returned: success, and when the wait failed
  type: dict
  sample:
    branch_id: br-small-term-683261
    name: orders_app
    protected: false
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
from ..module_utils._resources.declared import STATE_OPTIONS, declare
from ..module_utils._resources.kinds import DATABASE_USER


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    actions = {"reset_password": params["update_password"] == "always"}
    return declare(DATABASE_USER, {**params, **actions}, client, check_mode)


def main() -> None:
    ControlModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "branch": {"type": "str"},
            "update_password": {
                "type": "str",
                "choices": ["on_create", "always"],
                "default": "on_create",
                "no_log": False,
            },
            **PROJECT_OPTIONS,
            **STATE_OPTIONS,
        },
    ).run(run)


if __name__ == "__main__":
    main()
