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
        In a shell, C(set -a; . FILE; set +a) also exports the variable. A file that holds anything else, such as other variables, is refused.
    type: str
    choices: [uri, env]
    default: uri
  variable:
    description: Name of the variable with O(format=env).
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

import re
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional
from urllib.parse import quote, unquote, urlsplit

from ansible_collections.clouddb.control.plugins.module_utils._file_module import FileModule

from ..module_utils._errors import InvalidOption
from ..module_utils._files.secret_file import SecretFile, dest_from
from ..module_utils._http.client import Client
from ..module_utils._http.errors import NotFound
from ..module_utils._lists import ResourceNotFound, list_resources, there_is_no
from ..module_utils._options import NOT_CREATED_ID
from ..module_utils._projects import PROJECT_OPTIONS, project_id_from
from ..module_utils._resources.kinds import COMPUTE
from ..module_utils._resources.lookup import branch_id_from, label_of
from ..module_utils._resources.state import ABSENT, DELETING, own_state
from ..module_utils._secrets import MASK, masked_text

# The content of a file that can be shown: what is before the password, the password, and what is after it.
CONNECTION_STRING = r"((?:(?:export\s+)?\w+\s*=\s*)?['\"]?postgres(?:ql)?://[^\s:/?@]+:)([^\s:/?@]+)(@[^\s@'\"]+['\"]?)"


def run(
    params: Mapping[str, Any], client: Client, check_mode: bool, set_attributes: Callable[[str], bool]
) -> dict[str, Any]:
    """The task's result. C(set_attributes) sets owner, group and mode of a path; it returns whether they changed."""
    if not re.fullmatch(r"[A-Za-z_]\w*", params["variable"], re.ASCII):
        raise InvalidOption("variable", "must be a name of letters, digits and underscores, such as DATABASE_URL.")
    dest = dest_from(params, set_attributes, check_mode)
    if dest:
        dest.check()
    uri = _connection_uri(params, client.with_secrets(), check_mode)
    client.masker.hide(uri or "")
    parts = urlsplit(uri or "")
    # What does not exist yet has texts for secrets, too, because templates of later tasks use them.
    is_exposed = uri is not None and params["expose_secrets"]
    result: dict[str, Any] = {"changed": dest is not None, "diff": {"before": {}, "after": {}}}
    if dest and uri is not None:
        result = _write(dest, uri, params)
    return {
        **result,
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
        if params["pooled"]:
            query["pooled"] = "true"
        if params["read_only"]:
            query["endpoint_id"] = _read_replica(client, path[:4])
        response = client.get("projects", project_id, "connection_uri", query=query)
    except (NotFound, ResourceNotFound) as error:
        if check_mode:
            return None
        if isinstance(error, ResourceNotFound):
            raise
        for option, field in {"database": "databases", "user": "roles"}.items():
            listed = list_resources(client, (*path[:4], field), field)
            name = params[option]
            if name and name not in listed.names:
                raise there_is_no(option, option, listed, name) from None
        raise
    return str(response.object(uri=str)["uri"])


def _read_replica(client: Client, branch: Sequence[str]) -> str:
    """The id of the only read_only compute of the branch with this path. Raises InvalidOption, and NotFound if there is none."""
    listed = list_resources(client, (*branch, COMPUTE.plural), COMPUTE.plural).items
    found = [each for each in listed if each.get("type") == "read_only" and own_state(each) not in (ABSENT, DELETING)]
    if not found:
        problem = "read_only: the branch has no compute of type read_only. Create one with the module compute."
        raise ResourceNotFound(problem, {"option": "read_only"})
    if len(found) > 1:
        ids = ", ".join(map(label_of, found))
        problem = (
            f"the branch has several computes of type read_only: {ids}. Delete all but one with the module compute."
        )
        raise InvalidOption("read_only", problem)
    return str(found[0]["id"])


def _write(dest: SecretFile, uri: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Write the connection string unless the file holds it; what that changed, or would in check mode."""
    content = uri
    if params["format"] == "env":
        # In single quotes, dotenv libraries replace ${NAME}, and take a backslash for an escape.
        encoded = re.sub(r"[^\w!#%&()*+,./:;=?@\[\]~-]", lambda found: quote(found[0], safe=""), uri, flags=re.ASCII)
        content = f"{params['variable']}='{encoded}'\n"
    with dest.held():
        present = dest.read()
        diff = _difference(present, content.rstrip())
        if present == content.rstrip():
            return {"changed": dest.set_attributes(dest.path), "diff": diff}
        if params["format"] == "env" and present and not _holds_only(present, params["variable"]):
            problem = f"{dest.path} must hold {params['variable']} and nothing else. The file was not changed."
            raise InvalidOption("dest", f"{problem} Set dest to another path, or remove the file.")
        with dest.replacement() as write:
            write(content)
    return {"changed": True, "diff": diff}


def _difference(before: Optional[str], after: str) -> dict[str, dict[str, str]]:
    """The contents of the file without their secrets, and whether its password changes."""
    found = {
        side: re.fullmatch(CONNECTION_STRING, text) for side, text in (("before", before), ("after", after)) if text
    }
    diff = {
        side: {"content": masked_text(f"{match[1]}{MASK}{match[3]}") if match else MASK}
        for side, match in found.items()
    }
    if len({unquote(match[2]) for match in found.values() if match}) > 1:
        diff["before"]["password"], diff["after"]["password"] = "old", "new"
    return {"before": {}, **diff}


def _holds_only(text: str, variable: str) -> bool:
    """Whether the text of a file assigns a value to the variable, or is a connection string, and nothing else."""
    return re.fullmatch(rf"(?:(?:export\s+)?{variable}\s*=.*|\w+://\S+)", text) is not None


def main() -> None:
    FileModule(
        argument_spec={
            "branch": {"type": "str"},
            "database": {"type": "str", "required": True},
            "user": {"type": "str"},
            "expose_secrets": {"type": "bool", "default": False, "no_log": False},
            "pooled": {"type": "bool", "default": False},
            "read_only": {"type": "bool", "default": False},
            "format": {"type": "str", "choices": ["uri", "env"], "default": "uri"},
            "variable": {"type": "str", "default": "DATABASE_URL"},
            "dest": {"type": "path"},
            **PROJECT_OPTIONS,
        },
    ).run(run)


if __name__ == "__main__":
    main()
