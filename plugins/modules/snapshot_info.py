#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the snapshots of a project or of a branch. Keeps P1, P5 and P9."""

DOCUMENTATION = r"""
module: snapshot_info
short_description: List the snapshots of a project or of a branch
version_added: 3.0.0
description:
  - Lists all snapshots of a project, or of one of its branches, also those that a backup schedule has taken.
  - The list is complete, or the task fails.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.info
  - clouddb.control.resource.project
  - clouddb.control.organization
attributes:
  check_mode:
    details:
      - If an earlier task would create the project or the branch, the list is empty.
options:
  branch:
    description:
      - Id or name of the branch whose snapshots are returned. If not set, those of all branches of the project are returned.
      - After M(clouddb.control.branch_restore) with a snapshot, the earlier snapshots belong to the branch that the service has kept.
    type: str
seealso:
  - module: clouddb.control.snapshot
  - module: clouddb.control.branch_restore
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List the snapshots of a project
  clouddb.control.snapshot_info:
    project: shop
  register: shop

- name: Show the names of those that were not taken by a schedule
  ansible.builtin.debug:
    msg: "{{ shop.snapshots | selectattr('manual', 'defined') | selectattr('manual') | map(attribute='name') }}"
"""

RETURN = r"""
snapshots:
  description: Snapshots with all fields that the service sent.
  returned: success
  type: list
  elements: dict
  sample:
    - id: snap-quiet-dawn-418273
      name: before-release-42
      source_branch_id: br-small-term-683261
      manual: true
      created_at: "2026-11-26T08:30:12.000000Z"
      expires_at: "2026-12-10T08:30:12.000000Z"
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
from ..module_utils._resources.kinds import SNAPSHOT, info

run = partial(info, SNAPSHOT, "snapshots")


def main() -> None:
    ControlModule(
        argument_spec={"branch": {"type": "str"}, **PROJECT_OPTIONS},
    ).run(run)


if __name__ == "__main__":
    main()
