#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates, changes, starts, suspends, restarts or deletes a compute of a branch. Keeps P2, P3 and P9."""

DOCUMENTATION = r"""
module: compute
short_description: Create, change, start, suspend, restart or delete a compute
version_added: 2.0.0
description:
  - Creates a compute of a branch, changes its size and the time after which it is suspended, starts, suspends or restarts it, or deletes it.
  - A branch has at most one compute of type V(read_write), with which M(clouddb.control.branch) creates it, and any number of type V(read_only),
    which are its read replicas.
  - In the API, and in other clients of the service, a compute is called an endpoint.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - clouddb.control.resource
  - clouddb.control.resource.project
  - clouddb.control.organization
  - clouddb.control.resource.branch
  - clouddb.control.wait
options:
  type:
    description:
      - Type of the compute. It selects the compute of the branch, and cannot be changed.
      - The task fails if the branch has several computes of type V(read_only). Select one with O(id).
    type: str
    choices: [read_write, read_only]
    default: read_write
  id:
    description: Id of an existing compute of the project. O(branch) and O(type) have no effect then.
    type: str
  state:
    description:
      - V(present) creates the compute, or changes the settings that differ. It does not start a compute that is suspended.
      - V(started) and V(suspended) start or suspend an existing compute, unless it is active or idle already.
      - V(restarted) suspends and starts an existing compute each time.
      - V(absent) deletes the compute. The branch and its data stay.
      - The service also suspends computes that are not used, and starts them with the next connection. See O(suspend_timeout).
    type: str
    choices: [present, absent, started, suspended, restarted]
    default: present
  min_cu:
    description:
      - Minimum size of the compute, in compute units, such as V(0.25). If not set, it stays as it is, or the service decides.
      - This option, and all others that change the compute, require O(state=present).
    type: float
  max_cu:
    description: Maximum size up to which the service scales the compute, in compute units. If not set, it stays as it is, or the service decides.
    type: float
  suspend_timeout:
    description:
      - Time without activity after which the service suspends the compute, in seconds or with a unit, such as V(5m).
      - V(0) means the default of the service, and V(-1) never. If not set, it stays as it is, or is the default.
      - The service bounds it, and some plans do not allow to change it. If the service ignores it, the task warns.
    type: raw
  name:
    description: Name of the compute, which does not select it. If not set, it stays as it is.
    type: str
    version_added: 3.0.0
  pg_settings:
    description:
      - Postgres settings of the compute, by name. Only those that are given are compared and changed. The service lists which it accepts.
      - A value is text or a whole number. Quote V(on), V(off) and fractions, which YAML takes for other values.
    type: dict
    version_added: 3.0.0
  disabled:
    description: Whether connections to the compute are refused. If not set, it stays as it is.
    type: bool
    version_added: 3.0.0
notes:
  - If several hosts create the compute of type V(read_write) at the same time, it is created once. The service allows several of type
    V(read_only), so set C(run_once) for these.
seealso:
  - module: clouddb.control.branch
  - module: clouddb.control.compute_info
  - module: clouddb.control.connection_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Set the size of the compute of a branch, and suspend it after 5 minutes
  clouddb.control.compute:
    project: shop
    branch: pr-42
    min_cu: 0.25
    max_cu: 2
    suspend_timeout: 5m

- name: Create a read replica of the default branch
  clouddb.control.compute:
    project: shop
    type: read_only
  run_once: true

- name: Suspend the compute of a branch for the night
  clouddb.control.compute:
    project: shop
    branch: staging
    state: suspended

- name: Start it before the tests
  clouddb.control.compute:
    project: shop
    branch: staging
    state: started
"""

RETURN = r"""
compute:
  description: The compute as it is when the task ends, with all fields that the service sent. V(null) after it was deleted.
  returned: success, and when the wait failed
  type: dict
  sample:
    id: ep-cool-darkness-123456
    project_id: wispy-lake-12345678
    branch_id: br-small-term-683261
    host: ep-cool-darkness-123456.eu-central-1.aws.db.example.com
    type: read_write
    current_state: active
    autoscaling_limit_min_cu: 0.25
    autoscaling_limit_max_cu: 2
    suspend_timeout_seconds: 300
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
from ..module_utils._options import as_text, identifier, require_trimmed
from ..module_utils._projects import PROJECT_OPTIONS
from ..module_utils._resources.declared import STATE_OPTIONS, declare
from ..module_utils._resources.kinds import COMPUTE
from ..module_utils._timestamps import whole_seconds

# As the published API document has it.
NEVER = -1


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    identifier(params, "id")
    for option in ("min_cu", "max_cu", "suspend_timeout", "name", "pg_settings", "disabled"):
        if params[option] is not None and params["state"] != "present":
            problem = f"requires state: present. To change it and set state: {params['state']}, use two tasks."
            raise InvalidOption(option, problem)
    require_trimmed(params, "name")
    pg_settings = params["pg_settings"]
    # The service takes texts only.
    texts = {name: as_text("pg_settings", value, f"the value of {name}") for name, value in (pg_settings or {}).items()}
    values = {
        "suspend_timeout": whole_seconds(params, "suspend_timeout", NEVER),
        "settings": None if pg_settings is None else {"pg_settings": texts},
    }
    return declare(COMPUTE, {**params, **values}, client, check_mode)


def main() -> None:
    states = ["present", "absent", "started", "suspended", "restarted"]
    ControlModule(
        argument_spec={
            "branch": {"type": "str"},
            "type": {"type": "str", "choices": ["read_write", "read_only"], "default": "read_write"},
            "id": {"type": "str"},
            "min_cu": {"type": "float"},
            "max_cu": {"type": "float"},
            "suspend_timeout": {"type": "raw"},
            "name": {"type": "str"},
            "pg_settings": {"type": "dict"},
            "disabled": {"type": "bool"},
            **PROJECT_OPTIONS,
            **STATE_OPTIONS,
            "state": {"type": "str", "choices": states, "default": "present"},
        },
    ).run(run)


if __name__ == "__main__":
    main()
