#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the branches of a project. Keeps P1, P5 and P9."""

DOCUMENTATION = r"""
module: branch_info
short_description: List the branches of a project
version_added: 2.0.0
description:
  - Lists all branches of a project.
  - The list is complete. Every page is fetched, or the task fails.
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
      - If an earlier task would create the project, the list is empty.
seealso:
  - module: clouddb.control.branch
  - module: clouddb.control.compute_info
  - module: clouddb.control.project_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List the branches of a project
  clouddb.control.branch_info:
    project: shop
  register: shop

- name: Show the names of the branches that are not protected
  ansible.builtin.debug:
    msg: "{{ shop.branches | rejectattr('protected') | map(attribute='name') }}"
"""

RETURN = r"""
branches:
  description: Branches with all fields that the service sent.
  returned: success
  type: list
  elements: dict
  sample:
    - id: br-small-term-683261
      project_id: wispy-lake-12345678
      parent_id: br-autumn-art-204118
      name: pr-42
      default: false
      protected: false
      current_state: ready
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
from ..module_utils._resources.kinds import BRANCH, info

run = partial(info, BRANCH, "branches")


def main() -> None:
    ControlModule(argument_spec=PROJECT_OPTIONS).run(run)


if __name__ == "__main__":
    main()
