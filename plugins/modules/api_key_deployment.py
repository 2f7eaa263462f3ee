#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploys an API key to a host, step by step, and returns which key the host holds. Keeps P5, P6 and P7."""

DOCUMENTATION = r"""
module: api_key_deployment
short_description: "Internal: deploy an API key to a host and confirm it"
version_added: 1.0.0
description:
  - Internal to the role P(clouddb.control.api_key_rotation#role). Use the role instead, because this module can change in any release.
  - Runs one step of the deployment of an API key on a host that uses it.
  - Returns a confirmation of what the host holds, without which M(clouddb.control.api_key_rotation) revokes no key. The task must not be
    delegated, because a host can only confirm what it holds itself.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - ansible.builtin.files
attributes:
  diff_mode:
    support: none
    details:
      - The difference would be a secret.
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
      - V(inspect) checks that O(dest) and O(record) can be written, and sets O(owner), O(group) and O(mode) of an existing O(dest).
      - V(deploy) writes O(key) to O(dest), if the host still holds what V(inspect) found and the service accepts the key.
      - V(confirm) records that the deployment is complete, if O(dest) holds O(key) and the service accepts it. Run it after all other tasks that
        deploy the key.
      - V(commit) excludes a rollback of O(key_id), if the host holds this key and the service accepts it. Run it when all hosts have confirmed.
      - V(roll_back) restores O(previous), if O(dest) still holds O(key), the key was not committed, and the service accepts O(previous).
    type: str
    choices: [inspect, deploy, confirm, commit, roll_back]
    required: true
  host:
    description: Name of the host.
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
  dest:
    description: Path of the file for the secret. If not set, other tasks deploy the key.
    type: path
  record:
    description: Path of the file that records the deployment, required with O(dest).
    type: path
  key:
    description: Secret of the new key. With O(step=commit), set it only in the run that has deployed it.
    type: str
  key_id:
    description: Id of the key.
    type: int
  play_hosts_id:
    description: Id of the list of the hosts of the play, which RV(host_lists) need not have.
    type: str
  hosts:
    description: What M(clouddb.control.api_key_rotation) returned as C(hosts).
    type: list
    elements: str
  older_keys:
    description: What M(clouddb.control.api_key_rotation) returned as C(older_keys).
    type: list
    elements: list
  host_lists:
    description: What M(clouddb.control.api_key_rotation) returned as C(host_lists).
    type: list
    elements: str
    default: []
  fingerprint:
    description: C(fingerprint) of the confirmation that O(step=inspect) returned.
    type: str
  previous:
    description: What O(step=deploy) returned as RV(previous).
    type: str
  tasks_rolled_back:
    description: Whether other tasks that deployed the key were rolled back, or there were none.
    type: bool
    default: false
  api_key:
    description: Not used. The module authenticates with the secret that it verifies.
    type: str
    required: false
  attributes:
    description: Not supported. An attribute such as C(+i) would prevent a rollback.
"""

EXAMPLES = r"""
- name: Rotate a key with the role, which uses this module
  ansible.builtin.include_role:
    name: clouddb.control.api_key_rotation
"""

RETURN = r"""
confirmation:
  description: Which key the host holds, with checksums, ids and times, but no secret.
  returned: success, except with O(step=deploy)
  type: dict
host_lists:
  description: The lists of hosts that RV(confirmation) names by their ids, as JSON.
  returned: success, except with O(step=deploy)
  type: list
  elements: str
previous:
  description: Secret that O(dest) held before. V(null) if there was none.
  returned: success with O(step=deploy)
  type: str
failure:
  description: Machine-readable cause of the failure, as with M(clouddb.control.api_key).
  returned: failure
  type: dict
"""

from collections.abc import Mapping
from typing import Any, Callable

from ansible_collections.clouddb.control.plugins.module_utils._file_module import FileModule

from ..module_utils._errors import InvalidOption
from ..module_utils._files.secret_file import dest_from
from ..module_utils._http.client import Client
from ..module_utils._keys.scope import SCOPE_OPTIONS, scope_from
from ..module_utils._rotation.confirmation import Confirmation, run_from
from ..module_utils._rotation.deployment import Host, NewKey, commit, confirm, deploy, inspect, roll_back
from ..module_utils._rotation.host_lists import keys_from_ids
from ..module_utils._rotation.record import record_file


def run(
    params: Mapping[str, Any], client: Client, check_mode: bool, set_attributes: Callable[[str], bool]
) -> dict[str, Any]:
    """The task's result. C(set_attributes) sets owner, group and mode of a path; it returns whether they changed."""
    if params.get("attributes") is not None:
        raise InvalidOption("attributes", "is not supported. Omit it.")
    dest, record, step = params["dest"], params["record"], params["step"]
    host = Host(
        params["host"],
        run_from(params, check_mode),
        dest_from(params, set_attributes, check_mode),
        record_file(record, check_mode) if record else None,
        scope_from(params),
    )
    if dest and not record:
        raise InvalidOption("record", "is required with dest. Set the path of a file for the record.")
    if step == "deploy":
        # The task is not logged, and each host's result would repeat the names of all hosts.
        return {**deploy(client, host, _new_key(params), params["fingerprint"]), "invocation": {}}
    changed, confirmation = _confirmed(params, client, host)
    return {"changed": changed, **confirmation.as_result(params["play_hosts_id"])}


def _confirmed(params: Mapping[str, Any], client: Client, host: Host) -> tuple[bool, Confirmation]:
    """Run a step; returns whether that changed the host, and its confirmation."""
    step = params["step"]
    if step == "inspect":
        return inspect(client, host)
    if step == "commit":
        return False, commit(client, host, params["key_id"], _new_key(params) if params["key"] else None)
    if step == "confirm":
        return False, confirm(client, host, _new_key(params))
    changed, confirmation = roll_back(client, host, _new_key(params), params["previous"])
    return changed, confirmation._replace(tasks_rolled_back=params["tasks_rolled_back"])


def _new_key(params: Mapping[str, Any]) -> NewKey:
    """The key of the options. Raises InvalidOption."""
    if not params["key"]:
        raise InvalidOption("key", f"is required with step={params['step']}")
    hosts = params["hosts"] or []
    older_keys = keys_from_ids(params["older_keys"] or [], hosts, params["host_lists"])
    return NewKey(params["key_id"], params["key"], hosts, older_keys)


def main() -> None:
    key_and_id = ["key_id", "key"]
    FileModule(
        argument_spec={
            "step": {
                "type": "str",
                "choices": ["inspect", "deploy", "confirm", "commit", "roll_back"],
                "required": True,
            },
            "host": {"type": "str", "required": True},
            "run": {"type": "str", "required": True},
            "variables": {"type": "dict", "default": {}},
            "dest": {"type": "path"},
            "record": {"type": "path"},
            "key": {"type": "str", "no_log": True},
            "key_id": {"type": "int"},
            "play_hosts_id": {"type": "str"},
            "hosts": {"type": "list", "elements": "str"},
            "older_keys": {"type": "list", "elements": "list", "no_log": False},
            "host_lists": {"type": "list", "elements": "str", "default": []},
            "fingerprint": {"type": "str"},
            "previous": {"type": "str", "no_log": True},
            "tasks_rolled_back": {"type": "bool", "default": False},
            "api_key": {"type": "str", "required": False, "no_log": True},
            **SCOPE_OPTIONS,
        },
        required_if=[
            ("step", "deploy", [*key_and_id, "fingerprint", "hosts", "older_keys"]),
            ("step", "confirm", key_and_id),
            ("step", "commit", ["key_id"]),
            ("step", "roll_back", key_and_id),
        ],
    ).run(run)


if __name__ == "__main__":
    main()
