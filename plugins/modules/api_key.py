#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates and revokes API keys."""

from __future__ import annotations

DOCUMENTATION = r"""
module: api_key
short_description: Create and revoke API keys
version_added: 1.0.0
description:
  - Sees to it that an API key of a name exists, or that it is revoked.
  - The service shows a key's secret once, when the key is created. O(dest) puts it into a file, and keeps it out of results and logs.
  - A creation whose answer got lost is never repeated. When many hosts create the same key at once, one key stays.
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
      - In check mode RV(key) is V(null) and RV(api_key.id) of a key to be created is V(null), as the service has not given them out yet.
  diff_mode:
    description: Returns what has changed, or would have changed in check mode, when in diff mode.
    support: full
options:
  state:
    description:
      - V(present) creates the key unless there is one of that O(name).
      - V(absent) revokes it, which takes effect at once and can't be undone.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the key. It counts for the whole account. Hosts that each keep a secret of their own need names of their own, for example with
        C(inventory_hostname) in it, or they would replace each other's keys.
      - The service lets several keys have the same name.
      - Needed for O(state=present). For O(state=absent), give either this or O(id).
    type: str
  id:
    description:
      - Id of the key to revoke with O(state=absent), instead of its O(name).
    type: int
  dest:
    description:
      - Path of the file on the target that the secret is written to. It is then left out of the result.
      - The file is made sure of before the key is created, written as a whole and renamed into place. Its folder must exist.
      - For a key that exists, the file is read, and the service is asked whether it takes the key in it. The secret counts as lost when the
        file is missing or empty, or when the service refuses its content with 401.
      - A symbolic link is replaced by the file.
      - The file's mode is V(0600) unless O(mode) says otherwise.
      - Used with O(state=present) only; O(state=absent) leaves the file alone.
    type: path
  regenerate:
    description:
      - What to do about a key that exists already.
      - V(never) leaves it as it is. If O(dest) is set and the secret is lost, the task fails.
      - V(if_lost) replaces it if the secret in O(dest) is lost.
      - V(always) replaces it each time.
      - To replace a key, a new one is created and its secret is written to O(dest), and then all older ones of that O(name) are revoked.
    type: str
    choices: [never, if_lost, always]
    default: never
  allow_multiple:
    description:
      - Lets O(state=absent) revoke all keys of that O(name). Without it, the task fails when there are several.
    type: bool
    default: false
  mode:
    description:
      - The permissions of O(dest), as an octal number in quotes such as V('0640'), or symbolic, such as V(u=rw,g=r). V(0600) if not set.
  owner:
    description:
      - Name of the user that should own O(dest).
  group:
    description:
      - Name of the group that should own O(dest).
  attributes:
    description:
      - The file system attributes of O(dest), as C(lsattr) shows them.
  unsafe_writes:
    description:
      - Lets the secret be written into O(dest) where the file can't be replaced, as with one that is mounted into a container.
seealso:
  - module: clouddb.control.project_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Have a key for deployments, its secret in a file
  clouddb.control.api_key:
    name: deploy
    dest: /etc/myapp/clouddb.key
    owner: root
    group: myapp
    mode: "0640"

- name: Have a key of its own for each host, again if its file got lost
  clouddb.control.api_key:
    name: deploy-{{ inventory_hostname }}
    dest: /etc/myapp/clouddb.key
    regenerate: if_lost

- name: Create a key and keep its secret in a variable
  clouddb.control.api_key:
    name: ci-{{ now(utc=true).strftime('%Y%m%d%H%M%S') }}
  register: ci_key
  no_log: true

- name: Revoke it by its id
  clouddb.control.api_key:
    state: absent
    id: "{{ ci_key.api_key.id }}"

- name: Revoke every key of a name
  clouddb.control.api_key:
    state: absent
    name: old-laptop
    allow_multiple: true
"""

RETURN = r"""
api_key:
  description:
    - The key's public fields, all that the service sent. Of several keys of that name, the earliest.
    - V(null) with O(state=absent).
  returned: success
  type: dict
  contains:
    id:
      description: Id of the key; V(null) in check mode for a key to be created.
      type: int
      returned: success
      sample: 165432
    name:
      description: Name of the key.
      type: str
      returned: success
      sample: deploy
    created_at:
      description: When the key was created; V(null) in check mode for a key to be created.
      type: str
      returned: success
      sample: "2026-11-21T09:15:07.123456Z"
    last_used_at:
      description: When the key was last used; V(null) if it never was.
      type: str
      returned: success
      sample: null
    last_used_from_addr:
      description: Network address that the key was last used from; empty if it never was.
      type: str
      returned: success
      sample: ""
key:
  description:
    - The secret. Use C(no_log) on the task, or O(dest) instead.
    - V(null) in check mode.
  returned: when a key was created and O(dest) is not set
  type: str
  sample: 9v1faketcjbl4sn1013keyd43n2a8qlfakeog8yvp40hx16keyjo1bpds4y2dfms3
revoked:
  description: What the service answered to each revocation.
  returned: success
  type: list
  elements: dict
  sample:
    - id: 165431
      name: deploy
      revoked: true
      last_used_at: "2026-11-20T22:04:11.000000Z"
      last_used_from_addr: 192.0.2.7
failure:
  description:
    - What went wrong, for programs. C(kind) is always there.
    - C(key_ids) are the keys that the message is about.
    - C(status), C(message), C(code) and C(request_id) are the service's, C(method), C(path) and C(attempts) belong to the request.
  returned: failure
  type: dict
  sample:
    kind: unauthorized
    method: GET
    path: /api_keys
    attempts: 1
    status: 401
    message: this API key is not valid
    request_id: 3f1c5a52-6c0e-4b2f-9e57-0e2b40c54a0c
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import Client
from ..module_utils._keys.ensure import absent, present
from ..module_utils._keys.secret_file import SecretFile
from ..module_utils._module import connection_argument_spec, run_module
from ..module_utils._options import integer, not_blank


def run(
    params: Mapping[str, Any], client: Client, check_mode: bool, set_attributes: Callable[[str], bool]
) -> dict[str, Any]:
    """The task's result; C(set_attributes) gives a path the owner, group and mode of the options."""
    not_blank(params, "name")
    not_blank(params, "dest")
    integer(params, "id", 1)
    if params["state"] == "absent":
        return absent(client, params["id"], params["name"], params["allow_multiple"], check_mode)
    if params["regenerate"] == "if_lost" and params["dest"] is None:
        raise InvalidOption(
            "regenerate",
            "if_lost needs dest, the file whose secret may be lost; use always to replace the key in any case",
        )
    dest = SecretFile(params["dest"], set_attributes, params.get("unsafe_writes", False)) if params["dest"] else None
    return present(client, params["name"], dest, params["regenerate"], check_mode)


def set_file_attributes(module: AnsibleModule, path: str) -> bool:
    """Give the path the owner, group and mode that the options say, mode 0600 without one; whether that changed it."""
    params = {**module.params, "mode": module.params["mode"] if module.params["mode"] is not None else "0600"}
    if path != params["dest"]:
        # An attribute such as +i would keep a temporary file from being renamed.
        params["attributes"] = None
    changed: bool = module.set_fs_attributes_if_different(module.load_file_common_arguments(params, path=path), False)
    return changed


def main() -> None:
    module = AnsibleModule(
        argument_spec=connection_argument_spec(
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            name={"type": "str"},
            id={"type": "int"},
            dest={"type": "path"},
            regenerate={"type": "str", "choices": ["never", "if_lost", "always"], "default": "never"},
            allow_multiple={"type": "bool", "default": False},
        ),
        required_if=[("state", "present", ["name"]), ("state", "absent", ["name", "id"], True)],
        mutually_exclusive=[("name", "id")],
        add_file_common_args=True,
        supports_check_mode=True,
    )
    run_module(module, partial(run, set_attributes=partial(set_file_attributes, module)))


if __name__ == "__main__":
    main()
