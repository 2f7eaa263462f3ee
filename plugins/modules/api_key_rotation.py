#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans the rotation of an API key, and revokes keys if there is evidence that no host needs them. Keeps P3, P6 and P11."""

DOCUMENTATION = r"""
module: api_key_rotation
short_description: Plan the rotation of an API key and revoke older keys (internal)
version_added: 1.0.0
description:
  - Runs one step of the rotation of an API key that several hosts (its consumers) use. The role P(clouddb.control.api_key_rotation#role) uses
    this module.
  - The play must have the strategy C(linear).
  - Keys are revoked only with evidence from every consumer, as M(clouddb.control.api_key_deployment) returns it. If evidence is missing, old, or
    about another key, the task fails, names the consumers, and nothing is revoked.
author:
  - clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
attributes:
  check_mode:
    description: Can run in check mode and return what it would change.
    support: full
  diff_mode:
    description: Returns what has changed, or would have changed in check mode, when in diff mode.
    support: none
options:
  step:
    description:
      - V(plan) decides whether a new key is needed, and changes nothing.
      - V(revoke) revokes the keys older than O(key_id), if every consumer is committed to that key.
      - V(withdraw) revokes the new key O(key_id) if no consumer holds it, after its deployment has failed. The task always fails, with the
        errors of all consumers.
    type: str
    choices: [plan, revoke, withdraw]
    required: true
  name:
    description:
      - Name of the keys, with V({timestamp}) as the placeholder for the creation time, for example V(deploy-{timestamp}).
      - The module manages all keys with such a name.
    type: str
    required: true
  run:
    description:
      - Identifies the run. Evidence of another run is not accepted.
    type: str
    required: true
  variables:
    description:
      - Values of variables that must be the same on all hosts, by name. Evidence with other values is not accepted, and O(step=plan) fails with
        the names of these variables and hosts.
    type: dict
    default: {}
    version_added: 1.2.0
  evidence:
    description: Evidence from the consumers, as M(clouddb.control.api_key_deployment) returns it. Empty items are ignored.
    type: list
    elements: dict
    required: true
  known_keys:
    description:
      - The keys that the records of the consumers know, as O(clouddb.control.api_key_deployment#module:step=read_record) returns them, each different
        content once.
      - Evidence of other keys is not accepted.
    type: list
    elements: dict
    default: []
    version_added: 1.2.0
  hosts:
    description: Names of the hosts of the play, which are consumers of the key.
    type: list
    elements: str
    default: []
  consumers:
    description:
      - Names of further consumers of the key.
      - Those that the records of the consumers name are added.
    type: list
    elements: str
    default: []
  former_consumers:
    description: Names of consumers that no longer use the key, and of which no evidence is required. Those in O(hosts) or O(consumers) still are.
    type: list
    elements: str
    default: []
  own_key:
    description:
      - Id or name of the key that the task authenticates with, which is never revoked.
      - If no consumer has a record, older keys are revoked only with this option. If there are records, these show the own key.
      - The task fails before it creates or revokes a key unless exactly one key has this id or name. Not used with O(step=withdraw).
    type: str
    version_added: 1.2.0
  max_age:
    description: Maximum age of the newest key for O(step=plan), in seconds or as an age such as V(12h), V(30d) or V(4w).
    type: raw
    default: 30d
  keep:
    description: Number of older keys that stay valid.
    type: int
    default: 0
  grace_period:
    description: Time between the deployment of the newest key and the revocation of older keys, in seconds or with a unit such as V(15m) or V(1h).
    type: raw
    default: 0
  tags:
    description: Tags that the run is limited to or skips, which O(step=plan) refuses if there are any. They could skip tasks that deploy the key.
    type: list
    elements: str
    default: []
  key_id:
    description:
      - Id of the newest key. Required with O(step=revoke) and O(step=withdraw).
      - In check mode, O(step=revoke) without it returns what would be revoked after the creation of a new key, by the evidence of
        O(clouddb.control.api_key_deployment#module:step=inspect).
    type: int
  key:
    description:
      - Secret of the new key. Required with O(step=withdraw). With O(step=revoke), set it in the run that deployed the key.
      - Evidence of consumers that O(key) was deployed to with O(plan) is accepted as well.
    type: str
  plan:
    description: What O(step=plan) returned as RV(plan), for the other steps.
    type: dict
    version_added: 1.2.0
  errors:
    description: Error messages by consumer, for the message of O(step=withdraw).
    type: dict
    default: {}
seealso:
  - module: clouddb.control.api_key_deployment
  - module: clouddb.control.api_key
"""

EXAMPLES = r"""
- name: Rotate a key with the role, which uses this module
  ansible.builtin.include_role:
    name: clouddb.control.api_key_rotation
  vars:
    api_key_rotation_name: deploy-{timestamp}
    api_key_rotation_dest: /etc/myapp/clouddb.key
"""

RETURN = r"""
reason:
  description: Why a new key is needed. Empty if none is needed.
  returned: success with O(step=plan)
  type: str
  sample: key 165432 has reached its maximum age
message:
  description: Sentence that says whether a new key is needed.
  returned: success with O(step=plan)
  type: str
  sample: "A new key is needed: key 165432 has reached its maximum age."
name:
  description: Name of a new key.
  returned: success with O(step=plan)
  type: str
  sample: deploy-20261121T091507Z
api_key:
  description: Public fields of the newest key, as sent by the service. V(null) if there is none.
  returned: success
  type: dict
  sample:
    id: 165432
    name: deploy-20261021T091500Z
    created_at: "2026-10-21T09:15:00.123456Z"
    last_used_at: "2026-11-21T09:15:07.000000Z"
    last_used_from_addr: 192.0.2.7
plan:
  description: Consumers and older keys that this run was planned for, for the steps that follow and M(clouddb.control.api_key_deployment).
  returned: success with O(step=plan)
  type: dict
revoke:
  description: Whether older keys remain to be revoked once the newest key is deployed.
  returned: success with O(step=plan)
  type: bool
  sample: true
check_mode:
  description: Whether the task ran in check mode, also because of the keyword C(check_mode), which the variable C(ansible_check_mode) does not show.
  returned: success with O(step=plan)
  type: bool
  sample: false
grace_period:
  description: Remaining seconds of the grace period.
  returned: success with O(step=plan)
  type: float
  sample: 300
revoked:
  description: Revocation results, as sent by the service.
  returned: success with O(step=revoke)
  type: list
  elements: dict
  sample:
    - id: 165431
      name: deploy-20260921T091500Z
      revoked: true
      last_used_at: "2026-11-20T22:04:11.000000Z"
      last_used_from_addr: 192.0.2.7
left:
  description:
    - Ids of keys that are not revoked, and of which a warning says why.
    - With O(step=plan), those of which nothing shows who uses them, and older ones that can be revoked only with the next rotation. With
      O(step=revoke), the task's own key.
  returned: success
  type: list
  elements: int
  sample: []
failure:
  description:
    - Machine-readable description of the error. C(kind) is always set.
    - C(kind) is V(rotation_refused) when the evidence does not allow the step, V(rotation_failed) with O(step=withdraw), and V(orphaned_key) when
      keys that should have been revoked may be active. C(consumers) and C(key_ids) list what the message is about.
    - Other kinds are R(those of all modules, ansible_collections.clouddb.control.docsite.troubleshooting).
    - C(option) names the option if C(kind) is V(invalid_option).
    - C(status), C(message), C(code) and C(request_id) are from the service's response. C(method), C(path) and C(attempts) describe the request.
  returned: failure
  type: dict
  sample:
    kind: rotation_refused
    consumers: [web2]
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client

from ..module_utils._errors import InvalidOption
from ..module_utils._keys.api import list_keys, own_key_of
from ..module_utils._module import ControlModule, connection_argument_spec, run_module
from ..module_utils._options import integer, not_blank
from ..module_utils._rotation.deployment import new_key_from, planned_from
from ..module_utils._rotation.evidence import evidence_by_consumer, evidence_from, require_same_variables, run_from
from ..module_utils._rotation.plan import Rotation, managed_keys, plan, split_foreign
from ..module_utils._rotation.record import KnownKey, keys_from_json
from ..module_utils._rotation.revocation import revoke, withdraw
from ..module_utils._timestamps import MAX_AGE, duration

# The step of api_key_deployment that returns the evidence for each step.
EVIDENCE_STEPS = {"plan": "inspect", "revoke": "commit", "withdraw": "roll_back"}


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    for option in ("run", "hosts", "consumers", "former_consumers", "own_key"):
        not_blank(params, option)
    keep, grace_period, step = integer(params, "keep", 0), duration(params, "grace_period"), params["step"]
    max_age = timedelta(seconds=duration(params, "max_age", largest=MAX_AGE))
    # In check mode, no consumer can be committed to a key that would be created.
    evidence_step = "inspect" if check_mode and params["key_id"] is None else EVIDENCE_STEPS[step]
    listed = list_keys(client)
    now = client.service_now()
    run = run_from(params, check_mode)
    new_key = new_key_from(params)
    found = evidence_from(params["evidence"], [*_known_keys(params), *([new_key.known_keys()] if new_key else [])])
    if step == "plan":
        require_same_variables(found, run, evidence_step)
    evidence = evidence_by_consumer(found, run, evidence_step, now)
    rotation = Rotation(
        params["name"],
        *split_foreign(managed_keys(listed, params["name"]), evidence),
        [*params["consumers"], *planned_from(params)[0]],
        params["hosts"],
        params["former_consumers"],
        evidence,
        now,
        own_key_of(listed, params["own_key"])["id"] if params["own_key"] and step != "withdraw" else None,
    )
    if step == "plan":
        planned = plan(client, rotation, max_age, keep, grace_period, params["tags"])
        return {**planned, "check_mode": check_mode}
    if step == "revoke":
        return revoke(client, rotation, params["key_id"], keep, grace_period, check_mode)
    return withdraw(client, rotation, params["key_id"], params["key"], params["errors"], check_mode)


def _known_keys(params: Mapping[str, Any]) -> list[dict[int, KnownKey]]:
    """What was read from the records of the consumers. Raises InvalidOption."""
    try:
        return [keys_from_json(keys) for keys in params["known_keys"]]
    except (TypeError, ValueError, LookupError, AttributeError):
        raise InvalidOption("known_keys", "must be what clouddb.control.api_key_deployment returned") from None


def main() -> None:
    module = ControlModule(
        argument_spec=connection_argument_spec(
            step={"type": "str", "choices": ["plan", "revoke", "withdraw"], "required": True},
            name={"type": "str", "required": True},
            run={"type": "str", "required": True},
            variables={"type": "dict", "default": {}},
            evidence={"type": "list", "elements": "dict", "required": True},
            known_keys={"type": "list", "elements": "dict", "default": [], "no_log": False},
            hosts={"type": "list", "elements": "str", "default": []},
            consumers={"type": "list", "elements": "str", "default": []},
            former_consumers={"type": "list", "elements": "str", "default": []},
            own_key={"type": "str", "no_log": False},
            max_age={"type": "raw", "default": "30d"},
            keep={"type": "int", "default": 0},
            grace_period={"type": "raw", "default": 0},
            tags={"type": "list", "elements": "str", "default": []},
            key_id={"type": "int"},
            key={"type": "str", "no_log": True},
            plan={"type": "dict"},
            errors={"type": "dict", "default": {}},
        ),
        required_if=[("step", "withdraw", ["key_id", "key"])],
        supports_check_mode=True,
    )
    run_module(module, run)


if __name__ == "__main__":
    main()
