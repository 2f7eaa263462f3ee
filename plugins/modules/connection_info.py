#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Returns what an application needs to connect to a database, or writes it to a file. Keeps P5, P7 and P9."""

DOCUMENTATION = r"""
module: connection_info
short_description: Get the connection string of a database
version_added: 2.0.0
description: Returns what an application needs to connect to a database, or writes the connection string to a file.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.resource.project
  - clouddb.control.organization
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
    support: full
    details:
      - Shows the connection strings of Postgres in O(dest) with V(********) in place of the password, and whether the password changes.
        In place of any other content, shows V(********).
options:
  database:
    description: Name of the database.
    type: str
    required: true
  user:
    description: Name of the user to connect as. If not set, the owner of the database.
    type: str
  expose_secrets:
    description:
      - Whether the result contains RV(password) and RV(uri). If not set, V(********) replaces both.
      - Ansible masks them in all output from ansible-core 2.22 on. Before, set C(no_log) on the task, and on those that use them.
    type: bool
    default: false
  pooled:
    description: Whether to connect through the connection pooler of the service, for applications with many short connections.
    type: bool
    default: false
  read_only:
    description:
      - Whether to connect to the read replica of the branch, which is its compute of type C(read_only). See M(clouddb.control.compute).
      - The task fails if the branch has none, or several.
    type: bool
    default: false
  format:
    description:
      - Content of O(dest). V(uri) is the connection string alone.
      - V(env) is a line such as C(DATABASE_URL='postgresql://…'), which shells, dotenv libraries, Docker Compose and C(EnvironmentFile) of systemd read.
        In a shell, C(set -a; . FILE; set +a) also exports the variable.
      - V(env_literal) is the same line without quotes, for programs that take the value literally, such as C(docker run --env-file),
        C(kubectl create secret --from-env-file) and the file E(GITHUB_ENV). A shell cannot read it. It was added in version 3.0.0.
      - With each format, a file that holds anything but a connection string or O(variable), such as other variables, is refused.
    type: str
    choices: [uri, env, env_literal]
    default: uri
  variable:
    description: Name of the variable with O(format=env) and O(format=env_literal).
    type: str
    default: DATABASE_URL
  dest:
    description:
      - Path of the file on the target to write the connection string to. The directory must exist.
      - The file is replaced atomically, and only if its content differs. A file with several hard links is refused without O(unsafe_writes).
      - While the module compares and writes the file, it locks the directory in the same way as M(clouddb.control.api_key).
    type: path
  mode:
    description: Permissions of O(dest), as a quoted octal number such as V('0640') or in symbolic form. If not set, a new file gets V(0600), and an existing
      file keeps the permissions of its group and loses those of other users.
seealso:
  - module: clouddb.control.branch
  - module: clouddb.control.compute
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

- name: Write DATABASE_URL for an application that connects through the pooler
  clouddb.control.connection_info:
    project: shop
    branch: pr-42
    database: orders
    pooled: true
    format: env
    dest: "{{ playbook_dir }}/.env"

- name: Write the connection string of the read replica to a file
  clouddb.control.connection_info:
    project: shop
    database: orders
    user: reporting
    read_only: true
    dest: /etc/reporting/database.url

- name: Get the connection string
  clouddb.control.connection_info:
    project: shop
    branch: pr-42
    database: orders
    expose_secrets: true
  no_log: true # needed before ansible-core 2.22
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
  description: Password of the user. V(********) unless O(expose_secrets=true).
  returned: success
  type: str
uri:
  description: Connection string with the password. V(********) unless O(expose_secrets=true).
  returned: success
  type: str
failure:
  description: Machine-readable cause of the failure. R(Kinds of failure,
    ansible_collections.clouddb.control.docsite.failure_kinds) lists the kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: not_found
"""

from collections.abc import Mapping
from typing import Any, Callable

from ansible_collections.clouddb.control.plugins.module_utils._file_module import FileModule

from ..module_utils._addresses import find_address
from ..module_utils._files.connection_file import FORMATS, checked_variable, write
from ..module_utils._files.secret_file import dest_from
from ..module_utils._http.client import Client
from ..module_utils._projects import PROJECT_OPTIONS
from ..module_utils._secrets import MASK

VARIABLE = "DATABASE_URL"


def run(
    params: Mapping[str, Any], client: Client, check_mode: bool, set_attributes: Callable[[str], bool]
) -> dict[str, Any]:
    """The task's result. C(set_attributes) sets owner, group and mode of a path; it returns whether they changed."""
    variable = checked_variable(params["variable"])
    dest = dest_from(params, set_attributes, check_mode)
    if dest:
        dest.check()
    address = find_address(params, client, check_mode)
    result: dict[str, Any] = {"changed": False, "diff": {"before": {}, "after": {}}}
    if dest:
        result = write(dest, address and address.uri, params["format"], variable)
    if dest and params["format"] == "uri" and variable != VARIABLE:
        problem = f"variable: {variable} is not in the file, which has the bare connection string. Set format: env, or omit variable."
        result["warnings"] = [*result.get("warnings", []), problem]
    # What does not exist yet has texts for secrets, too, because templates of later tasks use them.
    is_exposed = address is not None and params["expose_secrets"]
    return {
        **result,
        "host": address and address.host,
        "port": address and address.port,
        "database": params["database"],
        "user": address.user if address else params["user"],
        "password": address.password if address and is_exposed else MASK,
        "uri": address.uri if address and is_exposed else MASK,
    }


def main() -> None:
    FileModule(
        argument_spec={
            "branch": {"type": "str"},
            "database": {"type": "str", "required": True},
            "user": {"type": "str"},
            "expose_secrets": {"type": "bool", "default": False, "no_log": False},
            "pooled": {"type": "bool", "default": False},
            "read_only": {"type": "bool", "default": False},
            "format": {"type": "str", "choices": [*FORMATS], "default": "uri"},
            "variable": {"type": "str", "default": VARIABLE},
            "dest": {"type": "path"},
            **PROJECT_OPTIONS,
        },
    ).run(run)


if __name__ == "__main__":
    main()
