#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the users of the databases of a branch. Keeps P1, P5 and P9."""

DOCUMENTATION = r"""
module: database_user_info
short_description: List the database users of a branch
version_added: 2.0.0
description:
  - Lists all users (Postgres roles) of a branch, without their passwords. M(clouddb.control.connection_info) returns a password.
  - The list is complete. Every page is fetched, or the task fails.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.info
  - clouddb.control.resource.project
  - clouddb.control.organization
  - clouddb.control.resource.branch
attributes:
  check_mode:
    details:
      - If an earlier task would create the project or the branch, the list is empty.
seealso:
  - module: clouddb.control.database_user
  - module: clouddb.control.database_info
  - module: clouddb.control.connection_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List the users of a branch
  clouddb.control.database_user_info:
    project: shop
    branch: staging
  register: staging

- name: Show their names
  ansible.builtin.debug:
    msg: "{{ staging.database_users | map(attribute='name') }}"
"""

RETURN = r"""
database_users:
  description: Users with all fields that the service sent, without passwords.
  returned: success
  type: list
  elements: dict
  sample:
    - branch_id: br-small-term-683261
      name: orders_app
      protected: false
      created_at: "2026-11-20T17:45:01.000000Z"
failure:
  description: Machine-readable cause of the failure. R(Kinds of failure,
    ansible_collections.clouddb.control.docsite.failure_kinds) lists the kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: not_found
"""

from functools import partial

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._projects import PROJECT_OPTIONS
from ..module_utils._resources.kinds import DATABASE_USER, info

run = partial(info, DATABASE_USER, "database_users")


def main() -> None:
    ControlModule(
        argument_spec={"branch": {"type": "str"}, **PROJECT_OPTIONS},
    ).run(run)


if __name__ == "__main__":
    main()
