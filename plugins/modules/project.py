#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates, changes or deletes a project. Keeps P2, P3 and P9."""

DOCUMENTATION = r"""
module: project
short_description: Create, change or delete a project
version_added: 2.0.0
description:
  - Creates a project with its default branch, compute, database and owner, changes it, or deletes it with all its data.
  - If several hosts create a project of one name at the same time, the first one stays. The other hosts delete theirs, and report C(ok) with a
    warning.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.organization
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - clouddb.control.resource
  - clouddb.control.resource.state
  - clouddb.control.wait
options:
  name:
    description:
      - Name of the project. The task fails if several projects have it.
      - With O(id), the new name of the project. With O(id) and O(state=absent), the project must have this name.
      - One of O(name) and O(id) is required.
    type: str
  id:
    description: Id of an existing project to change, delete or recover, in any organization.
    type: str
  state:
    description:
      - Whether the project should exist.
      - V(recovered) restores a project that was deleted, within the days for which the service keeps it, with its branches, computes, settings and
        connection strings. A project that exists stays as it is. Other options of the project are not applied.
      - If several deleted projects have the O(name), set O(id).
    type: str
    choices: [present, absent, recovered]
    default: present
  region_id:
    description: Region of a new project, for example V(aws-eu-central-1). If not set, the service decides. It cannot be changed later.
    type: str
  pg_version:
    description: Major Postgres version of a new project. If not set, the service decides. It cannot be changed later.
    type: int
  history_retention:
    description: How long the service keeps the history of the data, in seconds or with a unit, such as V(7d). V(0) keeps none. If not
      set, it stays as it is.
    type: raw
  settings:
    description:
      - Settings of the project, as the service's API has them, such as C(quota), C(allowed_ips) or C(maintenance_window).
      - Only the fields that are given are compared and changed, at any depth. Lists are compared in full.
      - ansible-core up to 2.18 turns a number that a template computes, such as V("{{ hours * 3600 }}"), into text. Let a template return the whole
        dictionary instead, or set a variable to the number first.
    type: dict
  default_compute:
    description: Settings of the computes that the service creates in the project, unless they have their own. If not set, they stay as they are.
    type: dict
    version_added: 3.0.0
    suboptions:
      min_cu:
        description: Minimum size, in compute units, such as V(0.25).
        type: float
      max_cu:
        description: Maximum size up to which the service scales a compute, in compute units.
        type: float
      suspend_timeout:
        description: Time without activity after which the service suspends a compute, as in O(clouddb.control.compute#module:suspend_timeout).
        type: raw
  branch_name:
    description: Name of the default branch of a new project. If not set, the service decides. It matters for a new project only.
    type: str
    version_added: 3.0.0
  database_name:
    description: Name of the database of a new project. If not set, the service decides. It matters for a new project only.
    type: str
    version_added: 3.0.0
  database_user:
    description: Name of the user that owns the database of a new project. If not set, the service decides. It matters for a new project only.
    type: str
    version_added: 3.0.0
notes:
  - The module sends the requests of the API document that Neon publishes.
seealso:
  - module: clouddb.control.project_info
  - module: clouddb.control.branch
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a project that keeps a week of history
  clouddb.control.project:
    name: shop
    region_id: aws-eu-central-1
    pg_version: 17
    history_retention: 7d
  register: shop

- name: Limit the compute time of a project, and the addresses that may connect
  clouddb.control.project:
    name: shop
    settings:
      quota:
        active_time_seconds: 360000
      allowed_ips:
        ips: [192.0.2.0/24]
        protected_branches_only: true

- name: Create a project with small computes and names of its own
  clouddb.control.project:
    name: blog
    branch_name: production
    database_name: blog
    database_user: blog_owner
    default_compute:
      min_cu: 0.25
      max_cu: 1
      suspend_timeout: 5m

- name: Rename a project
  clouddb.control.project:
    id: "{{ shop.project.id }}"
    name: web-shop

- name: Delete a project with all its data
  clouddb.control.project:
    name: old-shop
    state: absent

- name: Recover a project that was deleted by mistake
  clouddb.control.project:
    name: shop
    state: recovered
"""

RETURN = r"""
project:
  description: The project as it is when the task ends, with all fields that the service sent. V(null) after it was deleted.
  returned: success, and when the wait failed
  type: dict
  sample:
    id: wispy-lake-12345678
    name: shop
    region_id: aws-eu-central-1
    pg_version: 17
    history_retention_seconds: 604800
operations:
  description: Last known state of each operation that was waited for, with all fields that the service sent. See
    RV(clouddb.control.operation_info#module:operations).
  returned: success, and when the wait failed
  type: list
  elements: dict
elapsed:
  description: Duration of the task, in seconds.
  returned: success, and when the wait failed
  type: float
failed_ids:
  description: Ids of the failed operations.
  returned: when the wait failed
  type: list
  elements: str
pending_ids:
  description: Ids of the unfinished operations.
  returned: when the wait failed
  type: list
  elements: str
failure:
  description: Machine-readable cause of the failure. R(Kinds of failure,
    ansible_collections.clouddb.control.docsite.failure_kinds) lists the kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: wait_failed
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Optional

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._errors import ClouddbError, InvalidOption
from ..module_utils._http.client import Client
from ..module_utils._http.errors import NotFound
from ..module_utils._options import NOT_CREATED_ID, identifier, require_trimmed
from ..module_utils._projects import ORGANIZATION_OPTIONS
from ..module_utils._resources.declared import RECOVERABLE, STATE_OPTIONS, declare
from ..module_utils._resources.kinds import PROJECT
from ..module_utils._secrets import masked, secret_texts
from ..module_utils._timestamps import whole_seconds
from ..module_utils._untrusted import displayable

# The fields of the branch that a project is created with, by option.
FIRST_BRANCH = {"branch_name": "name", "database_name": "database_name", "database_user": "role_name"}


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    identifier(params, "id")
    require_trimmed(params, *FIRST_BRANCH)
    first_branch = {field: params[option] for option, field in FIRST_BRANCH.items() if params[option] is not None}
    values = {
        "history_retention": whole_seconds(params, "history_retention"),
        # A project with an id need not be in the organization that CLOUDDB_ORG_ID may set.
        "org_id": None if params["id"] else params["org_id"],
        "default_compute": _compute_settings(params["default_compute"]),
        "branch": first_branch or None,
    }
    if params["state"] == "absent" and params["id"] and params["name"] is not None:
        _require_own_name(client, params["id"], params["name"])
    if masked(params["settings"]) == params["settings"]:
        return declare(PROJECT, {**params, **values}, client, check_mode)
    # A mask in the response would always differ from the value that the task gives.
    masker = client.masker
    masker.hide(*secret_texts(params["settings"]))
    try:
        return dict(masker.data(declare(PROJECT, {**params, **values}, client.with_secrets(), check_mode)))
    except ClouddbError as error:
        error.result = masker.data(error.result)
        raise


def _compute_settings(options: Optional[Mapping[str, Any]]) -> Optional[dict[str, Any]]:
    """The fields of the service for the option C(default_compute), which may be None. Raises InvalidOption."""
    if options is None:
        return None
    try:
        timeout = whole_seconds(options, "suspend_timeout", -1)
    except InvalidOption as error:
        raise InvalidOption("default_compute", str(error)) from None
    least, most = options["min_cu"], options["max_cu"]
    if least is not None and most is not None and least > most:
        raise InvalidOption("default_compute", f"min_cu is {least:g}, more than max_cu, which is {most:g}")
    fields = {
        "autoscaling_limit_min_cu": least,
        "autoscaling_limit_max_cu": most,
        "suspend_timeout_seconds": timeout,
    }
    return {field: value for field, value in fields.items() if value is not None} or None


def _require_own_name(client: Client, project_id: str, name: str) -> None:
    """Raise InvalidOption if the project with this id has another name. It need not exist."""
    if project_id == NOT_CREATED_ID:
        return
    with suppress(NotFound):
        found = client.get("projects", project_id).object("project", name=str)["name"]
        if found != name:
            problem = f"project {project_id} has the name '{displayable(found, 100)}'. Set this name, or omit it."
            raise InvalidOption("name", problem)


def main() -> None:
    ControlModule(
        argument_spec={
            "name": {"type": "str"},
            "id": {"type": "str"},
            "region_id": {"type": "str"},
            "pg_version": {"type": "int"},
            "history_retention": {"type": "raw"},
            "settings": {"type": "dict"},
            "default_compute": {
                "type": "dict",
                "options": {
                    "min_cu": {"type": "float"},
                    "max_cu": {"type": "float"},
                    "suspend_timeout": {"type": "raw"},
                },
            },
            "branch_name": {"type": "str"},
            "database_name": {"type": "str"},
            "database_user": {"type": "str"},
            **ORGANIZATION_OPTIONS,
            **STATE_OPTIONS,
            **RECOVERABLE,
        },
        required_one_of=[("name", "id")],
    ).run(run)


if __name__ == "__main__":
    main()
