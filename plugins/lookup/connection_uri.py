# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection string of a database, as a lookup. Keeps P3, P5 and P11."""

from __future__ import annotations

DOCUMENTATION = r"""
name: connection_uri
short_description: Get the connection string of a database
version_added: 3.0.0
description:
  - Returns the connection string of a database, with the password, for variables and for options of modules such as those of C(community.postgresql).
  - To write it to a file, use the module M(clouddb.control.connection_info), which returns its parts, too.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection.plugin
  - clouddb.control.organization.plugin
  - clouddb.control.resource.branch
options:
  project:
    description: Id or name of the project.
    type: str
    required: true
  database:
    description: Name of the database.
    type: str
    required: true
  user:
    description: Name of the user to connect as. If not set, the owner of the database.
    type: str
  pooled:
    description: Whether to connect through the connection pooler of the service, for applications with many short connections.
    type: bool
    default: false
  read_only:
    description: Whether to connect to the read replica of the branch. The lookup fails if the branch has none, or several.
    type: bool
    default: false
notes:
  - The lookup runs on the controller, and takes no values from C(environment) and C(module_defaults) of a task.
  - Ansible masks the value in all output from ansible-core 2.22 on. Before, set C(no_log) on tasks that use it.
  - Ansible evaluates a variable with a lookup each time that it is used, which takes three to five requests. To use the value several times, store it
    with C(ansible.builtin.set_fact).
  - The database has to exist, even in check mode.
seealso:
  - module: clouddb.control.connection_info
  - plugin: clouddb.control.project_id
    plugin_type: lookup
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Deploy the configuration of the application
  ansible.builtin.template:
    src: application.conf.j2
    dest: /etc/myapp/application.conf
    mode: "0600"
  vars:
    database_url: "{{ lookup('clouddb.control.connection_uri', project='shop', branch='dev', database='orders') }}"
  no_log: true # needed before ansible-core 2.22
"""

RETURN = r"""
_raw:
  description: The connection string, as the only item of a list.
  type: list
  elements: str
  sample: ["postgresql://orders_app:PASSWORD@ep-cool-darkness-123456.eu-central-1.aws.db.example.com/orders?sslmode=require"]
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..module_utils._addresses import find_address
from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import Client
from ..plugin_utils._lookup import ClientLookup


class LookupModule(ClientLookup):
    """The lookup plugin."""

    def find(self, client: Client, params: Mapping[str, Any], terms: Sequence[Any]) -> list[str]:
        """The connection string of the database that the options name."""
        if terms:
            raise InvalidOption("terms", "the lookup takes options only, such as project='shop' and database='orders'.")
        address = find_address(params, client, check_mode=False)
        return [address.uri] if address else []
