#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates and revokes API keys. Keeps P2, P3, P5, P6, P7 and P9."""

DOCUMENTATION = r"""
module: api_key
short_description: Create and revoke API keys
version_added: 1.0.0
description:
  - Creates or revokes an API key by name. The service shows the secret of a key only once, when the key is created.
  - If the response to a create request is lost, the request is not retried. The task fails and names the key that may have been created.
  - If many hosts create the same key at once, one key is kept and the others are revoked.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - ansible.builtin.files
attributes:
  check_mode:
    details:
      - A key that would be created has an C(id) that is V(null), which later tasks accept as O(id). RV(key) is V(null), too.
      - The directory of O(dest) may be missing, because an earlier task would create it.
      - Whether O(owner), O(group), O(attributes) and a symbolic O(mode) can be set is not checked.
options:
  state:
    description:
      - V(present) creates the key unless a key of that O(name) exists.
      - V(absent) revokes the key. This takes effect immediately and can't be undone, even if it is the task's own key.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the key. Set either this or O(id). O(state=present) requires it.
      - Names are not unique. If each host has a secret of its own, give each key another name, for example with C(inventory_hostname). Otherwise
        the hosts replace each other's keys.
      - If the service changes the name of the new key, for example to lower case, the task revokes that key and fails. The message contains the
        name to set.
    type: str
  id:
    description: Id of the key to revoke with O(state=absent).
    type: int
  dest:
    description:
      - Path of the file on the target to write the secret to, in an existing directory. The secret is then not part of the result.
      - Before the module creates the key, it creates a temporary file in the directory, with the final owner and permissions. It then replaces
        O(dest) atomically. If that fails, for example because O(dest) is mounted into a container, the new key is revoked.
      - If the key exists, the module checks with a request whether the service accepts the content of the file. The secret is no longer
        available if the file is missing or empty, or if the service rejects its content with 401, twice within a second.
      - If the file holds anything but a key, such as a comment, C(NAME=value) or quotes, the task fails and changes nothing, whatever O(regenerate)
        is. White space, byte order marks and zero-width characters around the key are ignored.
      - The service does not show which key a secret belongs to, so any valid key counts as the secret of an existing key. Use a separate path for
        each key. If no key of that O(name) exists and the file holds a valid key, the task fails.
      - Symbolic links, other special files and files of more than 64 KiB are refused. A file that is replaced keeps its access list (POSIX ACL) and
        its other extended attributes, such as the SELinux context.
      - A file with several hard links is not replaced, because the others would keep the old secret. A container that mounts O(dest) itself also
        keeps the old file, so mount the directory.
      - While the task runs, the file C(.clouddb-UID.lock) in the directory keeps other tasks of the same user from writing secrets there. The task
        fails if the lock is not free within 300 seconds.
      - Only trusted users should be able to write to the directory.
      - Ignored with O(state=absent).
    type: path
  regenerate:
    description:
      - When to replace a key that already exists. The new secret is written to O(dest) before all older keys of that O(name) are revoked.
      - V(never) does not replace it. If O(dest) is set and the secret is no longer available, the task fails.
      - V(if_lost) replaces it if the secret in O(dest) is no longer available.
      - V(always) replaces it every time.
    type: str
    choices: [never, if_lost, always]
    default: never
  allow_multiple:
    description:
      - Whether O(state=absent) may revoke several keys of the same O(name). If it is V(false), the task fails if there are several.
      - The key that was used last is revoked last, because it may be the task's own key, without which no other can be revoked.
    type: bool
    default: false
  org_id:
    description:
      - Id of the organization that the key belongs to. If not set, the key belongs to the account.
      - No environment variable sets it.
    type: str
    version_added: 2.0.0
  project_id:
    description:
      - Id of the only project that the key may access. Requires O(org_id).
      - Keys of another scope never count as the key, even with the same O(name). If the service creates a key that is not limited to the project, the task
        revokes it and fails.
    type: str
    version_added: 2.0.0
  mode:
    description:
      - Permissions of O(dest), as a quoted octal number such as V('0640') or in symbolic form such as V(u=rw,g=r). The owner must be able to read
        the file.
      - If not set, a new file gets V(0600). An existing file keeps the permissions of its group and of its access list, and loses those of
        other users.
      - An octal mode also limits the access list to the permissions of the group.
  owner:
    description:
      - Name of the user that owns O(dest). If not set, an existing file keeps its owner, and a new one belongs to the user of the task.
      - In a world-writable directory, the new file keeps no attributes of the file that it replaces, because anyone could have created that file.
      - If the user of the task can't give the new file the owner and the group of the old one, the task fails before it creates a key.
  group:
    description: Name of the group that owns O(dest). If not set, an existing file keeps its group.
  attributes:
    description: File system attributes of O(dest), in the format of C(lsattr). They are set last. If that fails, the result names the new key.
  unsafe_writes:
    description: Allows writing the secret in place when O(dest) can't be replaced because it is a mount point or has several hard links.
seealso:
  - module: clouddb.control.api_key_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a key for CI that can access one project only
  clouddb.control.api_key:
    name: ci-shop
    org_id: org-sparkling-star-12345678
    project_id: wispy-lake-12345678
    dest: /etc/ci/clouddb.key

- name: Create a key for deployments and store its secret in a file
  clouddb.control.api_key:
    name: deploy
    dest: /etc/myapp/clouddb.key
    owner: root
    group: myapp
    mode: "0640"

- name: Create a key for each host, and replace it if its secret is no longer available
  clouddb.control.api_key:
    name: deploy-{{ inventory_hostname }}
    dest: /etc/myapp/clouddb.key
    regenerate: if_lost

- name: Create a key and register its secret
  clouddb.control.api_key:
    name: ci-{{ now(utc=true).strftime('%Y%m%d%H%M%S') }}
  register: ci_key
  no_log: true # needed before ansible-core 2.22

- name: Revoke the key by its id
  clouddb.control.api_key:
    state: absent
    id: "{{ ci_key.api_key.id }}"

- name: Revoke all keys of a name
  clouddb.control.api_key:
    state: absent
    name: old-laptop
    allow_multiple: true
"""

RETURN = r"""
api_key:
  description:
    - Public fields of the key, as sent by the service. If several keys have the name, the oldest of them.
    - V(null) with O(state=absent).
  returned: success
  type: dict
  sample:
    id: 165432
    name: deploy
    created_at: "2026-11-21T09:15:07.123456Z"
    last_used_at: null
    last_used_from_addr: ""
key:
  description:
    - Secret of the created key, V(null) in check mode.
    - Ansible masks it in all output from ansible-core 2.22 on. Before, set C(no_log) on the task and on those that use the key, or use O(dest) instead.
  returned: when a key was created and O(dest) is not set
  type: str
  sample: 9v1faketcjbl4sn1013keyd43n2a8qlfakeog8yvp40hx16keyjo1bpds4y2dfms3
revoked:
  description: Revocation results, as sent by the service.
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
    - Machine-readable cause of the failure. C(key_ids) lists the keys that the message is about. C(stored_name) is the name that the service has
      given to a key.
    - C(kind) can be V(secret_unavailable), V(other_key), V(several_keys), V(name_changed), V(wrong_scope), V(secret_file) or V(orphaned_key).
      R(Kinds of failure, ansible_collections.clouddb.control.docsite.failure_kinds) describes these and the other kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: secret_unavailable
"""

from collections.abc import Mapping
from typing import Any, Callable

from ansible_collections.clouddb.control.plugins.module_utils._file_module import FileModule

from ..module_utils._errors import InvalidOption
from ..module_utils._files.secret_file import dest_from
from ..module_utils._http.client import Client
from ..module_utils._keys.ensure import absent, present
from ..module_utils._keys.scope import SCOPE_OPTIONS, scope_from
from ..module_utils._options import NOT_CREATED_KEY_ID, integer, require_trimmed


def run(
    params: Mapping[str, Any], client: Client, check_mode: bool, set_attributes: Callable[[str], bool]
) -> dict[str, Any]:
    """The task's result. C(set_attributes) sets owner, group and mode of a path; it returns whether they changed."""
    if not (check_mode and params["id"] == NOT_CREATED_KEY_ID):
        integer(params, "id", 1)
    scope = scope_from(params)
    if params["state"] == "absent":
        return absent(client, params["id"], params["name"], scope, params["allow_multiple"], check_mode)
    require_trimmed(params, "name")
    dest = dest_from(params, set_attributes, check_mode)
    if params["regenerate"] == "if_lost" and dest is None:
        problem = "if_lost requires dest. Set dest, or use regenerate: always to replace the key every time."
        raise InvalidOption("regenerate", problem)
    return present(client, params["name"], scope, dest, params["regenerate"], check_mode)


def main() -> None:
    FileModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "name": {"type": "str"},
            "id": {"type": "int"},
            "dest": {"type": "path"},
            "regenerate": {"type": "str", "choices": ["never", "if_lost", "always"], "default": "never"},
            "allow_multiple": {"type": "bool", "default": False},
            **SCOPE_OPTIONS,
        },
        required_if=[("state", "present", ["name"]), ("state", "absent", ["name", "id"], True)],
        mutually_exclusive=[("name", "id")],
    ).run(run)


if __name__ == "__main__":
    main()
