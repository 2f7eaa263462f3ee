#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploys an API key to a host, step by step, and returns evidence of what the host holds. Keeps P5, P6 and P7."""

DOCUMENTATION = r"""
module: api_key_deployment
short_description: Deploy an API key to a host and return evidence of it (internal)
version_added: 1.0.0
description:
  - Runs one step of the deployment of an API key on a host that uses it (a consumer). The role P(clouddb.control.api_key_rotation#role) uses
    this module.
  - Each step returns evidence of what the host holds. M(clouddb.control.api_key_rotation) revokes no key without it.
  - The task must not be delegated, because a host can only show what it holds itself.
  - The module writes a secret only to a file that still has the content that this run has found or written there, and only a secret that the
    service accepts at that moment. Several rotations can therefore run at the same time, and the host has a valid key at any time.
author:
  - clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - ansible.builtin.files
attributes:
  check_mode:
    description: Can run in check mode and return what it would change.
    support: full
    details:
      - In check mode, the evidence is not accepted by a task that is not in check mode.
      - The directories of O(dest) and O(record) may be missing, because an earlier task would create them.
  diff_mode:
    description: Returns what has changed, or would have changed in check mode, when in diff mode.
    support: none
    details:
      - The difference would be a secret.
options:
  step:
    description:
      - V(inspect) returns evidence of what the host holds, and changes nothing. It fails if O(dest) can't be written with O(owner), O(group) and
        O(mode), or if there is no space for a new secret and a new record.
      - V(read_record) returns the keys that O(record) knows, with the names of their consumers, and changes nothing. Run it on one of the hosts
        with the same C(known_keys) in RV(evidence).
      - V(deploy) writes O(key) to O(dest), if the host still holds what V(inspect) found and the service accepts the key.
      - V(confirm) records that the deployment is complete, if O(dest) holds O(key) and the service accepts it. Run it after all other tasks that
        deploy the key.
      - V(commit) excludes a rollback of O(key_id), if the host holds this key and the service accepts it. Run it when all hosts are confirmed.
      - V(verify) fails unless the host holds O(key_id) and the service accepts it. Run it after older keys were revoked.
      - V(roll_back) restores O(previous), if O(dest) still holds O(key), the key was not committed, and the service accepts O(previous).
    type: str
    choices: [inspect, read_record, deploy, confirm, commit, verify, roll_back]
    required: true
  consumer:
    description: Name of the host, for the evidence.
    type: str
    required: true
  run:
    description:
      - Identifies the run that the evidence is for. Evidence of another run is not accepted. See
        O(clouddb.control.api_key_rotation#module:run).
    type: str
    required: true
  variables:
    description: Values of variables that must be the same on all hosts, by name, for the evidence.
    type: dict
    default: {}
    version_added: 1.2.0
  dest:
    description:
      - Path of the file on the host for the secret. The directory must exist.
      - If not set, the key is deployed by other tasks only.
    type: path
  record:
    description:
      - Path of the file on the host that records the deployment. It holds key ids, checksums and the names of consumers, but no secret.
      - Required with O(dest). It must be another file, on storage that survives a restart. A file that another user owns or may write is refused.
    type: path
  key:
    description:
      - Secret of the key to deploy.
      - Required with O(step=deploy), O(step=confirm) and O(step=roll_back). With O(step=commit), set it in the run that deployed the key.
    type: str
  key_id:
    description: Id of the key. Required with all steps except O(step=inspect) and O(step=read_record).
    type: int
  plan:
    description: The consumers and the older keys, as M(clouddb.control.api_key_rotation) returns them. Required with O(step=deploy).
    type: dict
    version_added: 1.2.0
  fingerprint:
    description:
      - The fingerprint in the evidence of O(step=inspect). Required with O(step=deploy).
      - With O(step=roll_back), set it if the task with O(step=deploy) has ended with an error of the module. If the host still holds what was
        inspected, nothing is written, so that a full disk does not prevent the rollback.
    type: str
  previous:
    description: What O(step=deploy) returned as RV(previous), for O(step=roll_back).
    type: str
  tasks_rolled_back:
    description:
      - Whether other tasks that deployed the key were rolled back, or there were none, for the evidence of O(step=roll_back).
    type: bool
    default: false
  api_key:
    description:
      - Not used. The module authenticates with the secret that it verifies.
    type: str
    required: false
  mode:
    description:
      - Permissions of O(dest), as a quoted octal number such as V('0640') or in symbolic form such as V(u=rw,g=r). If not set, as with
        M(clouddb.control.api_key).
  owner:
    description:
      - Name of the user that owns O(dest). If not set, an existing file keeps its owner, as with M(clouddb.control.api_key).
  group:
    description:
      - Name of the group that owns O(dest). If not set, an existing file keeps its group.
  attributes:
    description:
      - Not supported. An attribute such as C(+i) would keep a rollback from replacing the file.
  unsafe_writes:
    description:
      - Allows writing the secret in place when O(dest) can't be replaced atomically, for example a file that is mounted into a container.
seealso:
  - module: clouddb.control.api_key_rotation
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
evidence:
  description:
    - Evidence of what the host holds, for M(clouddb.control.api_key_rotation), which interprets it.
    - It has checksums, ids and times, but no secret.
  returned: success, except with O(step=read_record) and O(step=deploy)
  type: dict
known_keys:
  description: The keys that O(record) knows, with the names of their consumers, for M(clouddb.control.api_key_rotation).
  returned: success with O(step=read_record)
  type: dict
  version_added: 1.2.0
previous:
  description: Secret that O(dest) held before. V(null) if there was none. Set C(no_log) on the task.
  returned: success with O(step=deploy)
  type: str
failure:
  description:
    - Machine-readable description of the error. C(kind) is always set.
    - C(kind) is V(deployment_refused) when the host has changed in the meantime, the service does not accept the key, or the task is
      delegated. It is V(secret_file) when O(dest) or O(record) can't be read or written.
    - Other kinds are R(those of all modules, ansible_collections.clouddb.control.docsite.troubleshooting).
    - C(option) names the option if C(kind) is V(invalid_option).
    - C(status), C(message), C(code) and C(request_id) are from the service's response. C(method), C(path) and C(attempts) describe the request.
  returned: failure
  type: dict
  sample:
    kind: deployment_refused
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Callable

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client

from ..module_utils._errors import InvalidOption
from ..module_utils._file_module import FileModule
from ..module_utils._files.secret_file import dest_from, require_readable_mode
from ..module_utils._module import connection_argument_spec, run_module
from ..module_utils._options import not_blank
from ..module_utils._rotation.deployment import (
    Consumer,
    commit,
    confirm,
    deploy,
    inspect,
    new_key_from,
    restore,
    verify,
)
from ..module_utils._rotation.evidence import Evidence, run_from
from ..module_utils._rotation.record import keys_as_json, record_file


def run(
    params: Mapping[str, Any], client: Client, check_mode: bool, set_attributes: Callable[[str], bool]
) -> dict[str, Any]:
    """Returns the result of the task. C(set_attributes) sets owner, group and mode of a path; whether that changed it."""
    for option in ("consumer", "run", "dest", "record"):
        not_blank(params, option)
    if params.get("attributes") is not None:
        raise InvalidOption("attributes", "is not supported. Omit it.")
    require_readable_mode(params.get("mode"))
    dest, record, step = params["dest"], params["record"], params["step"]
    consumer = Consumer(
        params["consumer"],
        run_from(params, check_mode),
        dest_from(params, set_attributes, check_mode),
        record_file(record, check_mode) if record else None,
        check_mode,
    )
    if dest and not record:
        raise InvalidOption("record", "is required with dest. Set the path of a file for the record.")
    if step == "inspect":
        return _result(inspect(client, consumer))
    if step == "read_record":
        with consumer.held() as found:
            return {"changed": False, "known_keys": keys_as_json(found.record.keys if found.record else {})}
    key_id, key = params["key_id"], new_key_from(params)
    if step == "commit":
        return _result(commit(client, consumer, key_id, key))
    if step == "verify":
        return _result(verify(client, consumer, key_id))
    if key is None:
        raise InvalidOption("key", f"is required with step={step}")
    if step == "deploy":
        return deploy(client, consumer, key, params["fingerprint"])
    if step == "confirm":
        return _result(confirm(client, consumer, key))
    changed, evidence = restore(client, consumer, key, params["previous"], params["fingerprint"])
    return _result(evidence._replace(tasks_rolled_back=params["tasks_rolled_back"]), changed)


def _result(evidence: Evidence, changed: bool = False) -> dict[str, Any]:
    return {"changed": changed, "evidence": evidence.as_dict()}


def main() -> None:
    key_and_id = ["key_id", "key"]
    module = FileModule(
        argument_spec=connection_argument_spec(
            step={
                "type": "str",
                "choices": ["inspect", "read_record", "deploy", "confirm", "commit", "verify", "roll_back"],
                "required": True,
            },
            consumer={"type": "str", "required": True},
            run={"type": "str", "required": True},
            variables={"type": "dict", "default": {}},
            dest={"type": "path"},
            record={"type": "path"},
            key={"type": "str", "no_log": True},
            key_id={"type": "int"},
            plan={"type": "dict"},
            fingerprint={"type": "str"},
            previous={"type": "str", "no_log": True},
            tasks_rolled_back={"type": "bool", "default": False},
            api_key={"type": "str", "required": False, "no_log": True},
        ),
        required_if=[
            ("step", "deploy", [*key_and_id, "fingerprint", "plan"]),
            ("step", "confirm", key_and_id),
            ("step", "commit", ["key_id"]),
            ("step", "verify", ["key_id"]),
            ("step", "roll_back", key_and_id),
        ],
        add_file_common_args=True,
        supports_check_mode=True,
    )
    run_module(module, partial(run, set_attributes=module.set_file_attributes))


if __name__ == "__main__":
    main()
