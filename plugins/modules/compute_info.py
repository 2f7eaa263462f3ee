#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the computes of a project or of a branch. Keeps P1, P5 and P9."""

DOCUMENTATION = r"""
module: compute_info
short_description: List the computes of a project or of a branch
version_added: 2.0.0
description:
  - Lists all computes of a project, or of one of its branches.
  - In the API, and in other clients of the service, a compute is called an endpoint.
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
      - If an earlier task would create the project or the branch, the list is empty.
options:
  branch:
    description: Id or name of the branch whose computes are returned. If not set, those of all branches of the project are returned.
    type: str
seealso:
  - module: clouddb.control.compute
  - module: clouddb.control.branch_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List the computes of a project
  clouddb.control.compute_info:
    project: shop
  register: shop

- name: Show those that are active
  ansible.builtin.debug:
    msg: "{{ shop.computes | selectattr('current_state', 'eq', 'active') | map(attribute='id') }}"

- name: List the computes of a branch
  clouddb.control.compute_info:
    project: shop
    branch: staging
"""

RETURN = r"""
computes:
  description: Computes with all fields that the service sent.
  returned: success
  type: list
  elements: dict
  sample:
    - id: ep-cool-darkness-123456
      project_id: wispy-lake-12345678
      branch_id: br-small-term-683261
      host: ep-cool-darkness-123456.eu-central-1.aws.db.example.com
      type: read_write
      current_state: active
      autoscaling_limit_min_cu: 0.25
      autoscaling_limit_max_cu: 2
      suspend_timeout_seconds: 300
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
from ..module_utils._resources.kinds import COMPUTE, info

run = partial(info, COMPUTE, "computes")


def main() -> None:
    ControlModule(
        argument_spec={"branch": {"type": "str"}, **PROJECT_OPTIONS},
    ).run(run)


if __name__ == "__main__":
    main()
