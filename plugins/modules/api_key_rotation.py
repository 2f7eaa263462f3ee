#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans the rotation of an API key, and revokes keys once every host has confirmed that it holds the new one. Keeps P3, P6 and P11."""

DOCUMENTATION = r"""
module: api_key_rotation
short_description: "Internal: plan the rotation of an API key and revoke older keys"
version_added: 1.0.0
description:
  - Internal to the role P(clouddb.control.api_key_rotation#role). Use the role instead, because this module can change in any release.
  - Runs one step of the rotation of an API key that several hosts use, in a play with the strategy C(linear).
  - Revokes a key only if every host has confirmed with M(clouddb.control.api_key_deployment) that it does not need it. If a confirmation is
    missing, old, or about another key, the task fails, names the hosts, and revokes nothing.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
attributes:
  diff_mode:
    support: none
options:
  org_id:
    description: Id of the organization of the key, as in M(clouddb.control.api_key).
    type: str
    version_added: 2.0.0
  project_id:
    description: Id of the only project that the key may access, as in M(clouddb.control.api_key).
    type: str
    version_added: 2.0.0
  step:
    description:
      - V(plan) decides whether a new key is needed, and changes nothing.
      - V(revoke) revokes the keys older than O(key_id), if every host is committed to that key. In check mode without O(key_id), it returns what
        would be revoked after the creation of a new key.
      - V(roll_back) revokes the new key O(key_id) if no host holds it, after its deployment has failed. The task always fails, with the errors of
        the hosts.
    type: str
    choices: [plan, revoke, roll_back]
    required: true
  name:
    description: Name of the keys, with V({timestamp}) as the placeholder for the creation time.
    type: str
    required: true
  run:
    description: Identifies the run.
    type: str
    required: true
  variables:
    description: Variables that must be the same on all hosts, with their values.
    type: dict
    default: {}
  confirmations:
    description: What M(clouddb.control.api_key_deployment) returned on the hosts as C(confirmation).
    type: list
    elements: dict
    required: true
  play_hosts:
    description: Hosts of the play.
    type: list
    elements: str
    default: []
  host_lists:
    description: What M(clouddb.control.api_key_deployment) returned on the hosts as C(host_lists), each list once.
    type: list
    elements: str
    default: []
  hosts:
    description: Further hosts that use the key. Those in the records of the hosts are added. After O(step=plan), what it returned as RV(hosts).
    type: list
    elements: str
    default: []
  retired_hosts:
    description: Hosts that no longer use the key, even if a record names them.
    type: list
    elements: str
    default: []
  own_key:
    description: Id or name of the task's own key. Not used with O(step=roll_back).
    type: str
  max_age:
    description: Maximum age of the newest key.
    type: raw
    default: 30d
  keep:
    description: Number of older keys that stay valid.
    type: int
    default: 0
  grace_period:
    description: Time between deployment and revocation.
    type: raw
    default: 0
  tags:
    description: Tags that the run is limited to or skips. O(step=plan) refuses them, because they could skip tasks that deploy the key.
    type: list
    elements: str
    default: []
  key_id:
    description: Id of the newest key.
    type: int
  key:
    description: Secret of the new key, for O(step=roll_back).
    type: str
  errors:
    description: Error messages by host, for O(step=roll_back).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Rotate a key with the role, which uses this module
  ansible.builtin.include_role:
    name: clouddb.control.api_key_rotation
"""

RETURN = r"""
reason:
  description: Why a new key is needed. Empty if none is needed.
  returned: success with O(step=plan)
  type: str
message:
  description: The reason as a sentence.
  returned: success with O(step=plan)
  type: str
name:
  description: Name of a new key.
  returned: success with O(step=plan)
  type: str
api_key:
  description: Public fields of the newest key, as sent by the service. V(null) if there is none.
  returned: success
  type: dict
hosts:
  description: Names of all hosts that use the key.
  returned: success with O(step=plan)
  type: list
  elements: str
older_keys:
  description: What the records of the hosts have about each key, with an id in place of the list of its hosts.
  returned: success with O(step=plan)
  type: list
  elements: list
host_lists:
  description: The lists of hosts in RV(older_keys) that differ from RV(hosts), as JSON.
  returned: success with O(step=plan)
  type: list
  elements: str
revoke:
  description: Whether older keys remain to be revoked once the newest key is deployed.
  returned: success with O(step=plan)
  type: bool
check_mode:
  description: Whether the task ran in check mode. The variable C(ansible_check_mode) does not show the keyword C(check_mode).
  returned: success with O(step=plan)
  type: bool
grace_period:
  description: Remaining seconds of the grace period.
  returned: success with O(step=plan)
  type: float
revoked:
  description: Revocation results, as sent by the service.
  returned: success with O(step=revoke)
  type: list
  elements: dict
left:
  description: Ids of keys that are not revoked, and of which a warning says why.
  returned: success
  type: list
  elements: int
failure:
  description: Machine-readable cause of the failure, as with M(clouddb.control.api_key). C(hosts) and C(key_ids) list what the message is about.
  returned: failure
  type: dict
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._http.client import Client
from ..module_utils._keys.keys import list_keys, own_key_of
from ..module_utils._keys.scope import SCOPE_OPTIONS, scope_from
from ..module_utils._options import integer
from ..module_utils._rotation.confirmation import (
    confirmations_from,
    current_confirmations,
    require_same_variables,
    run_from,
)
from ..module_utils._rotation.plan import plan, rotation_of
from ..module_utils._rotation.revocation import revoke, roll_back
from ..module_utils._timestamps import MAX_AGE, duration


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    integer(params, "keep", 0)
    grace_period = duration(params, "grace_period")
    max_age = timedelta(seconds=duration(params, "max_age", largest=MAX_AGE))
    this_run, step = run_from(params, check_mode), params["step"]
    reported = confirmations_from(params["confirmations"], this_run, params["play_hosts"], params["host_lists"])
    if step == "plan":
        require_same_variables(reported, this_run)
    scope = scope_from(params)
    listed = list_keys(client, scope)
    now = client.service_now()
    rotation = rotation_of(
        params["name"],
        listed,
        [*params["play_hosts"], *params["hosts"]],
        params["retired_hosts"],
        current_confirmations(reported, this_run, now),
        now,
        own_key_of(client, scope, listed, params["own_key"])["id"]
        if params["own_key"] and step != "roll_back"
        else None,
        scope,
    )
    if step == "plan":
        return {**plan(rotation, params, max_age, grace_period), "check_mode": check_mode}
    if step == "revoke":
        return revoke(client, rotation, params["key_id"], params["keep"], grace_period, check_mode)
    return roll_back(client, rotation, params["key_id"], params["key"], params["errors"], check_mode)


def main() -> None:
    ControlModule(
        argument_spec={
            "step": {"type": "str", "choices": ["plan", "revoke", "roll_back"], "required": True},
            "name": {"type": "str", "required": True},
            "run": {"type": "str", "required": True},
            "variables": {"type": "dict", "default": {}},
            "confirmations": {"type": "list", "elements": "dict", "required": True},
            "play_hosts": {"type": "list", "elements": "str", "default": []},
            "host_lists": {"type": "list", "elements": "str", "default": []},
            "hosts": {"type": "list", "elements": "str", "default": []},
            "retired_hosts": {"type": "list", "elements": "str", "default": []},
            "own_key": {"type": "str", "no_log": False},
            **SCOPE_OPTIONS,
            "max_age": {"type": "raw", "default": "30d"},
            "keep": {"type": "int", "default": 0},
            "grace_period": {"type": "raw", "default": 0},
            "tags": {"type": "list", "elements": "str", "default": []},
            "key_id": {"type": "int"},
            "key": {"type": "str", "no_log": True},
            "errors": {"type": "dict", "default": {}},
        },
        required_if=[("step", "roll_back", ["key_id", "key"])],
    ).run(run)


if __name__ == "__main__":
    main()
