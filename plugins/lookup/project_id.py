# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The id of a project, as a lookup. Keeps P1, P3 and P11."""

from __future__ import annotations

DOCUMENTATION = r"""
name: project_id
short_description: Get the id of a project by its name
version_added: 3.0.0
description: Returns the ids of projects, for example for paths of M(clouddb.control.api_request).
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection.plugin
  - clouddb.control.organization.plugin
options:
  _terms:
    description: Names of projects. The lookup fails if there is no project of this name, or if several have it. An id stands for itself.
    type: list
    elements: str
    required: true
notes:
  - The lookup runs on the controller, and takes no values from C(environment) and C(module_defaults) of a task.
  - The project has to exist, even in check mode.
seealso:
  - module: clouddb.control.project_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Get a project by its id
  clouddb.control.api_request:
    path: "projects/{{ lookup('clouddb.control.project_id', 'shop') }}"
"""

RETURN = r"""
_raw:
  description: The id of each project.
  type: list
  elements: str
  sample: [wispy-lake-12345678]
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import Client
from ..module_utils._projects import project_id_from
from ..plugin_utils._lookup import ClientLookup, checked_text


class LookupModule(ClientLookup):
    """The lookup plugin."""

    def find(self, client: Client, params: Mapping[str, Any], terms: Sequence[Any]) -> list[str]:
        """The id of the project that each term names."""
        if not terms:
            raise InvalidOption("project", "no name is given. Set the name of a project.")
        projects = [checked_text("project", term) for term in terms]
        return [project_id_from({**params, "project": each}, client, may_be_missing=False) for each in projects]
