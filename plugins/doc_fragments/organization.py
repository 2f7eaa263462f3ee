# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of the option that all modules and plugins that list projects share. Keeps P1 and P11."""

from __future__ import annotations


class ModuleDocFragment:
    """Documents ORGANIZATION_OPTIONS of module_utils/_projects.py; PLUGIN is for plugins that run on the controller."""

    PLUGIN: str

    DOCUMENTATION = r"""
options:
  org_id:
    description:
      - Id of the organization in which projects are listed, found by their names, or created. Some accounts require it.
      - If not set, the environment variable E(CLOUDDB_ORG_ID) of the machine that sends the requests is used.
    type: str
    version_added: 2.0.0
"""


# ansible-test requires each assignment in the class to be a plain text.
ModuleDocFragment.PLUGIN = ModuleDocFragment.DOCUMENTATION.replace(
    "    type:", "    env: [{name: CLOUDDB_ORG_ID}]\n    type:"
)
