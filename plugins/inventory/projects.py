# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's projects as inventory hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: projects
short_description: Projects of the account as inventory hosts
version_added: 1.0.0
description:
  - Makes a host of each project of the account, with the project's fields as variables, in the group C(clouddb_projects).
  - Reads a file whose name ends in C(clouddb.yml) or C(clouddb.yaml).
author:
  - clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection.plugin
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
options:
  plugin:
    description: Marks the file as one of this plugin.
    type: str
    required: true
    choices: [clouddb.control.projects]
  hostnames:
    description:
      - Fields of a project to name its host by; the first one that is not empty counts.
      - Where several projects would have the same name, each has its id added to it, as in V(shop-wispy-lake-12345678). So has one that
        is named C(localhost) or C(all).
      - Characters other than letters, digits, dots, dashes and underscores become underscores.
    type: list
    elements: str
    default: [name, id]
  hostvars_prefix:
    description:
      - What the names of the variables begin with.
    type: str
    default: clouddb_
  filters:
    description:
      - Which projects to take, by C(project_id), C(name) or C(region_id), exactly, as the module M(clouddb.control.project_info) does.
    type: dict
    default: {}
  query:
    description:
      - Further query parameters to send, if the service knows any, such as C(org_id) or C(search).
    type: dict
  page_size:
    description:
      - Number of projects to ask for with each request. If not set, the service decides.
    type: int
  operations:
    description:
      - Gives each host a further variable, C(clouddb_operations) with the default prefix. It holds those of the project's operations that
        were created during the last day and are unfinished or have failed.
    type: bool
    default: false
  workers:
    description:
      - How many projects to read the operations of at the same time, at most 32.
    type: int
    default: 4
notes:
  - Values of O(base_url) and O(api_key) may be templates or vaulted.
  - The cache holds neither the key nor anything that it could be told from.
seealso:
  - module: clouddb.control.project_info
"""

EXAMPLES = r"""
# The smallest file, for example production.clouddb.yml, with CLOUDDB_BASE_URL and CLOUDDB_API_KEY in the environment, is its first line.
plugin: clouddb.control.projects

# Address and key can be in the file as well.
base_url: https://control.example.com/api/v2
api_key: "{{ lookup('ansible.builtin.file', '/run/secrets/clouddb.key') }}"

# Groups by region and version.
keyed_groups:
  - key: clouddb_region_id
    prefix: region
  - key: clouddb_pg_version | string
    prefix: postgres

# Groups by what is going on or went wrong today, and one of the locked projects.
operations: true
groups:
  busy: clouddb_operations | rejectattr('status', 'in', ['failed', 'error', 'cancelled']) | list | length > 0
  broken: clouddb_operations | selectattr('status', 'equalto', 'failed') | list | length > 0
  locked: clouddb_locked

# Where to connect to.
compose:
  ansible_host: clouddb_proxy_host

# The projects are read once an hour.
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/ansible-inventory
cache_timeout: 3600
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.module_utils.basic import missing_required_lib
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._errors import ClouddbError, InvalidOption, NotFound
from ..module_utils._http.client import MAX_WORKERS, Client
from ..module_utils._http.connection import Connection, connection_from
from ..module_utils._http.session import REQUESTS_IMPORT_ERROR
from ..module_utils._module import connection_argument_spec
from ..module_utils._operations.api import Selection, list_operations
from ..module_utils._operations.status import SUCCEEDED
from ..module_utils._options import integer
from ..module_utils._parallel import in_parallel
from ..module_utils._projects import Filters, checked_filters, checked_query, list_projects

GROUP = "clouddb_projects"
CONNECTION_OPTIONS = tuple(connection_argument_spec())
# Names that mean something else in an inventory.
RESERVED = ("all", "ungrouped", "localhost", "127.0.0.1", "::1", GROUP)


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Fetches the projects, or takes them from the cache, and makes hosts of them."""

    NAME = "clouddb.control.projects"

    def verify_file(self, path: str) -> bool:
        """Whether this file is one for this plugin, by its name."""
        return bool(super().verify_file(path)) and path.endswith(("clouddb.yml", "clouddb.yaml"))

    def parse(self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True) -> None:
        """Fill the inventory. Raises AnsibleParserError with the client's message."""
        super().parse(inventory, loader, path, cache)
        if REQUESTS_IMPORT_ERROR:
            raise AnsibleParserError(missing_required_lib("requests"))
        self._read_config_data(path)
        try:
            account = self._account(use_cache=cache)
        except ClouddbError as error:
            raise AnsibleParserError(str(error)) from error
        self._populate(account)

    def _account(self, use_cache: bool) -> dict[str, Any]:
        """C(projects), and C(operations) of each project by its id where these are asked for."""
        options = _checked(
            {name: self._templated(name) for name in ("filters", "query", "page_size", "operations", "workers")}
        )
        connection = connection_from({name: self._templated(name) for name in CONNECTION_OPTIONS})
        key = _cache_key(connection, options)
        if self.get_option("cache") and use_cache and key in self._cache:
            cached: dict[str, Any] = self._cache[key]
            return cached
        account = _fetch(Client(connection), options)
        for warning in account["warnings"]:
            self.display.warning(warning)
        # A list with gaps is not kept: the next run may get a whole one.
        if self.get_option("cache") and not account["warnings"]:
            self._cache[key] = account
        return account

    def _templated(self, option: str) -> Any:
        return self.templar.template(self.get_option(option))

    def _populate(self, account: dict[str, Any]) -> None:
        self.inventory.add_group(GROUP)
        prefix, strict = self.get_option("hostvars_prefix"), self.get_option("strict")
        names = host_names(account["projects"], self.get_option("hostnames"))
        for project in account["projects"]:
            host = self.inventory.add_host(names[project["id"]], group=GROUP)
            # What the service sent is data: it is never taken for a template.
            variables = {f"{prefix}{field}": wrap_var(value) for field, value in project.items()}
            if project["id"] in account["operations"]:
                variables[f"{prefix}operations"] = wrap_var(account["operations"][project["id"]])
            for name, value in variables.items():
                self.inventory.set_variable(host, name, value)
            self._set_composite_vars(self.get_option("compose"), variables, host, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host, strict=strict)


def host_names(projects: Sequence[dict[str, Any]], preferences: Sequence[str]) -> dict[str, str]:
    """A host name for each project id, all different: the first preferred field that is not empty, else the id.

    Only letters, digits, dots, dashes and underscores are kept: a host name may be taken for a template.
    """
    names = {
        project["id"]: _host_name(next(filter(None, map(project.get, preferences)), project["id"]))
        for project in projects
    }
    count = Counter([*names.values(), *RESERVED, *RESERVED])
    names = {
        project_id: f"{name}-{_host_name(project_id)}" if count[name] > 1 else name
        for project_id, name in names.items()
    }
    # A name made longer may meet another one; ids alone never meet.
    while len(count := Counter(names.values())) < len(names):
        names = {project_id: _host_name(project_id) if count[name] > 1 else name for project_id, name in names.items()}
    return names


def _host_name(value: Any) -> str:
    return re.sub(r"[^\w.-]", "_", str(value))


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options with the filters as Filters and the query as it is sent. Raises InvalidOption."""
    unknown = set(options["filters"]) - set(Filters._fields)
    if unknown:
        raise InvalidOption("filters", f"there are {', '.join(Filters._fields)}, but no {', '.join(sorted(unknown))}")
    integer(options, "page_size", 1)
    integer(options, "workers", 1, MAX_WORKERS)
    return {**options, "filters": checked_filters(options["filters"]), "query": checked_query(options)}


def _fetch(client: Client, options: dict[str, Any]) -> dict[str, Any]:
    found = list_projects(client, options["filters"], options["query"], options["page_size"])
    ids = [project["id"] for project in found.projects] if options["operations"] else []
    operations = in_parallel(partial(_open_operations, client), ids, options["workers"])
    return {"projects": found.projects, "operations": dict(zip(ids, operations)), "warnings": found.warnings()}


def _open_operations(client: Client, project_id: str) -> list[dict[str, Any]]:
    """Today's operations of a project that have not ended well; none of a project that was deleted meanwhile."""
    try:
        today = list_operations(client, project_id, Selection(created_after=timedelta(days=1)))
    except NotFound:
        return []
    return [operation for operation in today if operation["status"] not in SUCCEEDED]


def _cache_key(connection: Connection, options: dict[str, Any]) -> str:
    """A name for the answer to these options with this key, from which neither can be told."""
    wanted = json.dumps([connection.base_url, connection.api_key, options], sort_keys=True)
    return f"clouddb_projects_{hashlib.sha256(wanted.encode()).hexdigest()}"
