# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory plugin for the projects of the account. Keeps P1, P3, P5 and P8."""

from __future__ import annotations

DOCUMENTATION = r"""
name: projects
short_description: Inventory of the projects of the account
version_added: 1.0.0
description:
  - Adds a host for each project of the account to the group C(clouddb_projects), with the fields of the project as host variables.
  - Uses a configuration file whose name ends in C(clouddb.yml) or C(clouddb.yaml).
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection.plugin
  - clouddb.control.organization.plugin
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
options:
  plugin:
    description: Name of this plugin.
    type: str
    required: true
    choices: [clouddb.control.projects]
  hostnames:
    description:
      - Fields of a project to use as its host name. The first one that contains a string with an ASCII letter or digit applies, or else C(id).
      - If another project, a group or Ansible itself uses the name, regardless of case, the id is appended, for example
        V(shop-wispy-lake-12345678), because Ansible takes C(hosts) and C(--limit) of this name for the host alone. The groups are those of earlier
        sources, of O(groups) and of O(keyed_groups). A project that several sources of this plugin contain is one host.
      - A group that would get the name of a host of an earlier source is an error.
      - Names are shortened to 100 characters. Underscores replace all characters other than ASCII letters, digits, dots, dashes and
        underscores.
      - A project can have the same name as a host of another inventory source. If that is possible, use V(id).
    type: list
    elements: str
    default: [name, id]
  hostvars_prefix:
    description:
      - Prefix of the names of the host variables.
      - Fields that would become variables of Ansible, such as C(ansible_host) or C(inventory_dir), or whose names are not valid for variables, are
        left out with a warning.
    type: str
    default: clouddb_
  filters:
    description:
      - Exact values of C(project_id), C(name) or C(region_id) that projects must have, as in M(clouddb.control.project_info).
      - If no project has them, a warning names similar ones.
    type: dict
    default: {}
  query:
    description: Additional query parameters for the list, as far as the service supports them, such as C(search).
    type: dict
  page_size:
    description: Maximum number of projects in a page. If not set, the largest that the service takes.
    type: int
  operations:
    description:
      - Whether hosts have the variable C(clouddb_operations) (with the default prefix). It lists the project's operations that were created within
        the last 24 hours and are unfinished or failed.
      - A project whose operations cannot be found is named in a warning, and its host does not have the variable.
    type: bool
    default: false
  allow_incomplete:
    description:
      - Whether to use a list of projects that the service marks as incomplete. A warning then names the projects that are missing.
      - By default, such a list is an error, because AWX with C(overwrite) would delete the hosts of the missing projects.
    type: bool
    default: false
    version_added: 3.0.0
  local_connection:
    description:
      - Whether tasks for the projects run on the controller, with its own Python, as Ansible cannot log in to a project. Hosts then have the variables
        C(ansible_connection) and C(ansible_python_interpreter), which O(compose) can change.
      - Tasks of this collection then also start at once, without a new process of Python.
    type: bool
    default: false
    version_added: 2.0.0
  workers:
    description: Number of projects whose operations are fetched in parallel, from 1 to 32.
    type: int
    default: 4
notes:
  - Ansible cannot log in to a project. Set O(local_connection) for plays on the projects.
  - The value of a C(key) in O(keyed_groups) can be a number or a boolean. A null value makes no group, unless C(default_value) is set.
  - If the inventory cannot be read, Ansible only warns and runs the play without hosts. Set C(ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED=true)
    to make this an error.
  - Values from the service and from O(compose) are never rendered as templates.
  - All values can be vaulted with C(!vault). O(base_url), O(api_key), O(org_id) and the values in O(filters) and O(query) can also be templates, with
    variables of C(--extra-vars).
  - The cache does not contain the API key. A list about which there is a warning is not cached.
seealso:
  - module: clouddb.control.project_info
"""

EXAMPLES = r"""
# production.clouddb.yml
# With CLOUDDB_BASE_URL and CLOUDDB_API_KEY in the environment, only this line is required.
plugin: clouddb.control.projects

# Run the tasks of plays on the projects on the controller.
local_connection: true

# Connection options can be set in the file.
base_url: https://control.example.com/api/v2
api_key: "{{ lookup('ansible.builtin.file', '/run/secrets/clouddb.key') }}"

# Create groups by region and version.
keyed_groups:
  - key: clouddb_region_id
    prefix: region
  - key: clouddb_pg_version
    prefix: postgres

# Create groups of projects with unfinished or failed operations, and of locked projects.
operations: true
groups:
  busy: clouddb_operations | rejectattr('status', 'in', ['failed', 'error', 'cancelled']) | list | length > 0
  broken: clouddb_operations | selectattr('status', 'in', ['failed', 'error', 'cancelled']) | list | length > 0
  locked: clouddb_locked

# Set variables for other collections.
compose:
  login_host: clouddb_proxy_host

# Cache the projects for an hour.
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/ansible-inventory
cache_timeout: 3600
"""

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from copy import copy
from datetime import timedelta
from functools import partial
from typing import Any, Callable

import jinja2
from ansible import constants
from ansible.errors import AnsibleError, AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ..module_utils._errors import ClouddbError, InvalidOption, sentence
from ..module_utils._http.client import MAX_WORKERS, Client
from ..module_utils._http.connection import CONNECTION_OPTIONS, Connection, connection_from
from ..module_utils._http.session import COLLECTION_VERSION, REQUESTS_IMPORT_ERROR, missing_requests
from ..module_utils._lists import no_such
from ..module_utils._operations.operations import Selection, list_operations, map_projects
from ..module_utils._operations.status import SUCCEEDED
from ..module_utils._options import as_text, integer
from ..module_utils._projects import ProjectFilter, checked_filters, checked_query, list_projects, no_project
from ..module_utils._secrets import encodings
from ..module_utils._untrusted import MAX_MESSAGE_LENGTH, displayable, is_id
from ..plugin_utils._host_names import LOCAL_NAMES, host_names
from ..plugin_utils._versions import inert, register_secrets

GROUP = "clouddb_projects"
# Names of host variables; those that begin with ansible_ would change how Ansible connects.
VARIABLE = re.compile("(?!ansible_)[A-Za-z_][A-Za-z0-9_]*")
# Variables and functions of templates that Ansible itself sets.
OWN_VARIABLES = {*constants.INTERNAL_STATIC_VARS, *jinja2.defaults.DEFAULT_NAMESPACE}
OWN_VARIABLES |= {"environment", "lookup", "now", "omit", "q", "query", "undef", "vars"}


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Adds the projects, fetched or from the cache, to the inventory."""

    NAME = "clouddb.control.projects"
    # Whether _compose() evaluates the names of groups.
    _names_groups = False

    def verify_file(self, path: str) -> bool:
        """Whether the name of the file is one of this plugin's.

        Ansible's plugin C(auto) passes on only files that name this plugin, so it gets an error that says how the name must end.
        If the plugin is enabled by itself, it is asked about every file, and an error means no.
        """
        if not super().verify_file(path):
            return False
        if path.endswith(("clouddb.yml", "clouddb.yaml")):
            return True
        raise AnsibleParserError(
            f"The name of a file with plugin: {self.NAME} must end in clouddb.yml or clouddb.yaml. Rename {path}."
        )

    def parse(self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True) -> None:
        """Add hosts, groups and variables to the inventory. Raises AnsibleParserError, with the client's message."""
        super().parse(inventory, loader, path, cache)
        if REQUESTS_IMPORT_ERROR:
            raise AnsibleParserError(missing_requests())
        try:
            self._read_config_data(path)
            # Those of --extra-vars.
            self.templar.available_variables = self._vars
            projects = self._projects(use_cache=cache)
        except ClouddbError as error:
            raise AnsibleParserError(str(error)) from error
        self._add(projects)

    def _add(self, projects: list[dict[str, Any]]) -> None:
        """Add the projects, or nothing: with a part of its groups, plays could run on hosts that they exclude.

        Ansible takes the name of a host for the host, even if there is a group of this name. So if a host has the name of a
        group, all are added again under names without those of the groups.
        """
        taken = {self._sanitize_group_name(name) for name in self.get_option("groups") or {}}
        variables, is_added = self._variables(projects), False
        while not is_added:
            others, groups, undo = {*self.inventory.hosts}, {*self.inventory.groups}, _memento(self.inventory)
            try:
                hosts = self._populate(projects, variables, {*groups, *taken})
                lowered = {name.lower() for name in hosts}
                found = {group for group in self.inventory.groups if group not in groups}
                clashes = {group for group in found if group.lower() in lowered}
                # Plays on the controller, or on hosts of other sources, would run on projects.
                for name in sorted((found & {*LOCAL_NAMES, *(others - hosts)}) | (clashes & taken)):
                    raise AnsibleParserError(
                        f"keyed_groups, groups: no group may be named {name}, as there is a host of this name. "
                        "No host was added. Set a prefix."
                    )
            except BaseException:
                undo()
                raise
            is_added = not clashes
            if clashes:
                undo()
                taken |= clashes

    def set_options(self, task_keys: Any = None, var_options: Any = None, direct: Any = None) -> None:
        """Set the options from the configuration file, C(direct). Raises InvalidOption."""
        given = _decrypted(direct or {})
        for name in sorted(set(given) - set(self.option_definitions)):
            # Ansible would ignore it: with a misspelled filter, plays would run on all projects.
            raise InvalidOption(displayable(name, 100), no_such("option", str(name), self.option_definitions))
        try:
            boolean(given.get("validate_certs", True))
        except TypeError:
            # Ansible would take it for false, and turn the validation off.
            raise InvalidOption("validate_certs", "must be true or false") from None
        super().set_options(task_keys, var_options, given)

    def _projects(self, use_cache: bool) -> list[dict[str, Any]]:
        """The projects with their operations, from the cache or the service."""
        options = _checked(
            {name: self._option(name) for name in ("filters", "org_id", "query", "page_size", "operations", "workers")}
        )
        given = {name: self._option(name) for name in CONNECTION_OPTIONS}
        # connection_from() refuses an empty value, and says what to set.
        required = {name: given[name] or "" for name, option in CONNECTION_OPTIONS.items() if "fallback" in option}
        connection = connection_from({**given, **required})
        if register_secrets:
            register_secrets(encodings(connection.api_key))
        key = _cache_key(connection, options) if self.get_option("cache") else None
        cached = self._cached(key) if key and use_cache else None
        if cached is not None:
            return cached
        projects, warnings = _fetch(Client(connection), options, boolean(self._option("allow_incomplete")))
        for warning in warnings:
            self.display.warning(displayable(warning, MAX_MESSAGE_LENGTH))
        # The next run may get what is missing.
        if key and not warnings:
            self._cache[key] = projects
        return projects

    def _cached(self, key: str) -> list[dict[str, Any]] | None:
        """The projects in the cache; None if there are none, or if what is there is damaged."""
        try:
            found = self._cache[key]
        except (AnsibleError, LookupError, TypeError, ValueError):
            return None
        is_usable = isinstance(found, list) and all(isinstance(each, dict) and is_id(each.get("id")) for each in found)
        return found if is_usable else None

    def _option(self, option: str) -> Any:
        """The value of the option, with templates rendered."""
        return self.templar.template(self.get_option(option))

    def _populate(self, projects: list[dict[str, Any]], own: dict[str, dict[str, Any]], groups: set[str]) -> set[str]:
        """Add hosts that have none of the names in C(groups), with the variables in C(own), by their ids. Returns the names."""
        self.inventory.add_group(GROUP)
        strict, is_local = self.get_option("strict"), self.get_option("local_connection")
        earlier = _earlier_ids(self.inventory)
        names = host_names(projects, self.get_option("hostnames"), {*groups, GROUP}, earlier)
        for project in projects:
            host, variables = self.inventory.add_host(names[project["id"]], group=GROUP), own[project["id"]]
            local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
            for name, value in {**variables, **(local if is_local else {})}.items():
                self.inventory.set_variable(host, name, value)
            self._set_composite_vars(self.get_option("compose"), variables, host, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), variables, host, strict=strict)
        self._names_groups = True
        for project_id, host in names.items():
            try:
                self._add_host_to_keyed_groups(self.get_option("keyed_groups"), own[project_id], host, strict=strict)
            except AnsibleError as error:
                problem = sentence(displayable(f"keyed_groups: {host}: {error}", MAX_MESSAGE_LENGTH))
                raise AnsibleParserError(f"{problem} No host was added.") from error
        self._names_groups = False
        return {*names.values()}

    def _variables(self, projects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The variables of each project by its id, marked as unsafe, so that they are never rendered as templates."""
        prefix = self.get_option("hostvars_prefix")
        names = {field: f"{prefix}{field}" for project in projects for field in project}
        left_out = [field for field, name in names.items() if not VARIABLE.fullmatch(name) or name in OWN_VARIABLES]
        if left_out:
            self.display.warning(
                displayable(f"Fields of projects that cannot be host variables are left out: {', '.join(left_out)}.")
            )
        return {
            project["id"]: {names[field]: inert(value) for field, value in project.items() if field not in left_out}
            for project in projects
        }

    def _compose(self, *args: Any, **kwargs: Any) -> Any:
        """The value of an expression, marked as unsafe: ansible-core up to 2.18 drops the mark of some values in it.

        Ansible requires text for the name of a group, so numbers and booleans are text there.
        """
        value = super()._compose(*args, **kwargs)
        return inert(str(value) if self._names_groups and isinstance(value, (bool, int, float)) else value)


def _memento(inventory: InventoryData) -> Callable[[], None]:
    """A function that makes the inventory, its hosts and its groups what they are now. It can be called once."""
    kept = [inventory, *inventory.hosts.values(), *inventory.groups.values()]
    attributes = [
        {name: copy(value) if isinstance(value, (dict, list, set)) else value for name, value in vars(each).items()}
        for each in kept
    ]

    def undo() -> None:
        for each, saved in zip(kept, attributes):
            vars(each).clear()
            vars(each).update(saved)

    return undo


def _decrypted(value: Any) -> Any:
    """The value, with the text of each C(!vault) value in it: up to ansible-core 2.18, these are objects, which conversions refuse."""
    if isinstance(value, Mapping):
        return {name: _decrypted(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_decrypted(part) for part in value]
    is_vaulted = hasattr(value, "encode") and not isinstance(value, str)
    return str(value) if is_vaulted else value


def _earlier_ids(inventory: InventoryData) -> dict[str, set[str]]:
    """The ids of the projects that earlier sources of this plugin have added, by host name.

    The prefix of their variables is unknown, so these are the values of all variables whose names end in C(id). A host of
    the group without such a variable is from another source.
    """
    found = {}
    for host in inventory.groups[GROUP].hosts:
        ids = {value for name, value in host.vars.items() if str(name).endswith("id") and isinstance(value, str)}
        if ids:
            found[str(host.name)] = ids
    return found


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options, with filters as ProjectFilter and query as query parameters. Raises InvalidOption."""
    unknown = set(options["filters"]) - set(ProjectFilter._fields)
    if unknown:
        raise InvalidOption(
            "filters", f"unknown keys: {', '.join(sorted(unknown))}. Use {', '.join(ProjectFilter._fields)}."
        )
    filters = {name: as_text("filters", value, name) for name, value in options["filters"].items()}
    integer(options, "page_size", 1)
    integer(options, "workers", 1, MAX_WORKERS)
    return {**options, "filters": checked_filters(filters), "query": checked_query(options)}


def _fetch(client: Client, options: dict[str, Any], allow_incomplete: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """The projects, with their operations if they are wanted, and warnings about what is missing. Raises ClouddbError."""
    filters, query = options["filters"], options["query"]
    found = list_projects(client, filters, query, options["page_size"])
    projects, warnings = found.items, list(found.warnings)
    # A project that was selected by its id is all that is wanted.
    if found.unavailable_ids and not allow_incomplete and not (filters.project_id and projects):
        message = f"{' '.join(warnings)} To use the other projects, set allow_incomplete: true."
        raise ClouddbError("incomplete_list", message, {"unavailable_project_ids": found.unavailable_ids})
    if not projects and (query or any(filters)):
        sent = {name: ", ".join(map(str, values)) for name, values in query.items()}
        warnings.append(str(no_project(found._replace(warnings=[]), filters, sent)))
    if options["operations"]:
        ids = [project["id"] for project in projects]
        operations, missing = map_projects(ids, partial(_operations_of, client), options["workers"])
        # Without an entry, nothing is known: an empty list would say that no operation is unfinished or has failed.
        known = {project_id: {"operations": listed} for project_id, listed in operations.items()}
        projects = [{**project, **known.get(project["id"], {})} for project in projects]
        warnings += missing
    return projects, warnings


def _operations_of(client: Client, project_id: str) -> list[dict[str, Any]]:
    """The project's operations of the last 24 hours that have not succeeded."""
    operations = list_operations(client, project_id, Selection(created_after=timedelta(days=1)))
    return [operation for operation in operations if operation["status"] not in SUCCEEDED]


def _cache_key(connection: Connection, options: dict[str, Any]) -> str:
    """A cache key for these options, this API key and this version of the collection, which may become the name of a file.

    A key of the service is too long to be guessed from its hash.
    """
    identity = json.dumps([COLLECTION_VERSION, connection.base_url, connection.api_key, options], sort_keys=True)
    return f"clouddb_projects_{hashlib.sha256(identity.encode()).hexdigest()}"
