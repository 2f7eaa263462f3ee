#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Returns what an application needs to connect to a database, or writes it to a file. Keeps P5, P7 and P9."""

DOCUMENTATION = r"""
module: connection_info
short_description: Get the connection string of a database
version_added: 1.2.0
description: Returns what an application needs to connect to a database, or writes the connection string to a file.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.resource.project
  - clouddb.control.resource.branch
  - ansible.builtin.files
attributes:
  check_mode:
    description: Can run in check mode and return what it would change.
    support: full
    details:
      - If an earlier task would create the database, RV(host) and RV(port) are V(null).
  diff_mode:
    description: Returns what has changed, or would have changed in check mode, when in diff mode.
    support: none
    details:
      - The difference would be a secret.
options:
  database:
    description: Name of the database.
    type: str
    required: true
  user:
    description: Name of the user to connect as. If not set, the owner of the database.
    type: str
  expose_secrets:
    description: Whether the result contains RV(password) and RV(uri). Set C(no_log) on the task then. Otherwise V(********) takes their place.
    type: bool
    default: false
  dest:
    description:
      - Path of the file on the target to write the connection string to. The directory must exist.
      - The file is replaced atomically, and only if its content differs. A file with several hard links is refused without O(unsafe_writes).
      - While the module compares and writes the file, it locks the directory in the same way as M(clouddb.control.api_key).
    type: path
  mode:
    description: Permissions of O(dest), as a quoted octal number such as V('0640') or in symbolic form. If not set, a new file gets V(0600), and an existing
      file keeps the permissions of its group and loses those of other users.
notes:
  - The module follows the service's published API document.
seealso:
  - module: clouddb.control.branch
  - module: clouddb.control.database
  - module: clouddb.control.database_user
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Write the connection string to a file of the application
  clouddb.control.connection_info:
    project: shop
    branch: pr-42
    database: orders
    user: orders_app
    dest: /etc/myapp/database.url

- name: Get the connection string
  clouddb.control.connection_info:
    project: shop
    branch: pr-42
    database: orders
    expose_secrets: true
  no_log: true
  register: orders
"""

RETURN = r"""
host:
  description: Host to connect to. V(null) in check mode if the database does not exist yet, as is RV(port).
  returned: success
  type: str
  sample: ep-cool-darkness-123456.eu-central-1.aws.db.example.com
port:
  description: Port to connect to.
  returned: success
  type: int
database:
  description: Name of the database.
  returned: success
  type: str
user:
  description: Name of the user.
  returned: success
  type: str
password:
  description: Password of the user.
  returned: success
  type: str
uri:
  description: Connection string with the password.
  returned: success
  type: str
failure:
  description: Machine-readable cause of the failure. R(Troubleshooting,
    ansible_collections.clouddb.control.docsite.troubleshooting) lists the kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: not_found
"""

from collections.abc import Mapping
from typing import Any, Callable, Optional
from urllib.parse import unquote, urlsplit

from ansible_collections.clouddb.control.plugins.module_utils._file_module import FileModule

from ..module_utils._files.secret_file import SecretFile, dest_from
from ..module_utils._http.client import Client
from ..module_utils._http.errors import NotFound
from ..module_utils._lists import list_resources, there_is_no
from ..module_utils._options import NOT_CREATED_ID
from ..module_utils._projects import PROJECT_OPTIONS, project_id_from
from ..module_utils._resources.lookup import branch_id_from
from ..module_utils._secrets import MASK


def run(
    params: Mapping[str, Any], client: Client, check_mode: bool, set_attributes: Callable[[str], bool]
) -> dict[str, Any]:
    """The task's result. C(set_attributes) sets owner, group and mode of a path; it returns whether they changed."""
    dest = dest_from(params, set_attributes, check_mode)
    if dest:
        dest.check()
    uri = _connection_uri(params, client.with_secrets(), check_mode)
    parts = urlsplit(uri or "")
    # What does not exist yet has texts for secrets, too, because templates of later tasks use them.
    is_exposed = uri is not None and params["expose_secrets"]
    return {
        "changed": dest is not None and (uri is None or _write(dest, uri)),
        "host": parts.hostname,
        "port": uri and (parts.port or 5432),
        "database": params["database"],
        "user": unquote(parts.username or "") or params["user"],
        "password": unquote(parts.password or "") if is_exposed else MASK,
        "uri": uri if is_exposed else MASK,
    }


def _connection_uri(params: Mapping[str, Any], client: Client, check_mode: bool) -> Optional[str]:
    """The connection string; None if an earlier task would create what it is about."""
    project_id = str(project_id_from(params, client, may_be_missing=check_mode))
    branch_id = branch_id_from(params["branch"], client, project_id, may_be_missing=check_mode)
    if branch_id == NOT_CREATED_ID:
        return None
    path = ("projects", project_id, "branches", branch_id, "databases", params["database"])
    try:
        user = params["user"] or client.get(*path).object("database", owner_name=str)["owner_name"]
        query = {"branch_id": branch_id, "database_name": params["database"], "role_name": user}
        response = client.get("projects", project_id, "connection_uri", query=query)
    except NotFound:
        if check_mode:
            return None
        for option, field in {"database": "databases", "user": "roles"}.items():
            listed = list_resources(client, (*path[:4], field), field)
            name = params[option]
            if name and name not in listed.names:
                raise there_is_no(option, option, listed, name) from None
        raise
    return str(response.object(uri=str)["uri"])


def _write(dest: SecretFile, uri: str) -> bool:
    """Write the connection string unless the file holds it; whether that changed the file, or would in check mode."""
    with dest.held():
        if dest.read() == uri:
            return dest.set_attributes(dest.path)
        with dest.replacement() as write:
            write(uri)
    return True


def main() -> None:
    FileModule(
        argument_spec={
            "branch": {"type": "str"},
            "database": {"type": "str", "required": True},
            "user": {"type": "str"},
            "expose_secrets": {"type": "bool", "default": False, "no_log": False},
            "dest": {"type": "path"},
            **PROJECT_OPTIONS,
        },
    ).run(run)


if __name__ == "__main__":
    main()
