# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options and notes that the modules of projects, branches, computes, databases and users share. Keeps P3 and P9."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  wait:
    description: Whether to wait for the operations on the resource, and until the resource is in the requested state.
    type: bool
    default: true
attributes:
  check_mode:
    details:
      - Only GET requests are sent. A resource that would be created has the C(id) V(null), which later tasks accept in check mode.
      - The task fails if the lists of the service show that it will refuse the request, for example to delete a protected branch. It warns if an earlier
        task of the playbook may solve the problem, for example by creating the owner of a database.
  diff_mode:
    details:
      - Only the fields that change are shown.
notes:
  - If the response to a request is lost, the request is not sent again. The task finds out whether it was carried out, as M(clouddb.control.api_request) does.
"""

    # Where a task can delete the resource.
    STATE = r"""
options:
  state:
    description:
      - V(present) creates the resource, or changes the fields that differ.
      - V(absent) deletes it, and waits until it is gone.
    type: str
    choices: [present, absent]
    default: present
"""

    # Where a resource belongs to a project.
    PROJECT = r"""
options:
  project:
    description: Id or name of the project. A value in the form of an id, such as V(wispy-lake-12345678), is taken for the id if there is a project with it.
    type: str
    required: true
notes:
  - The module sends the requests of the API document that Neon publishes.
"""

    # Where it also belongs to a branch of the project.
    BRANCH = r"""
options:
  branch:
    description: Id or name of the branch. If not set, the project's default branch.
    type: str
"""
