# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options and notes that the modules of projects, branches, databases and users share."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) creates the resource, or changes the fields that differ.
      - V(absent) deletes it, and waits until it is gone.
    type: str
    choices: [present, absent]
    default: present
  wait:
    description:
      - Whether to wait until the resource is as asked, and for the operations on it.
    type: bool
    default: true
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying the target.
    support: full
    details:
      - Only GET requests are sent. A resource that would be created has the id V(null), which later tasks accept in check mode.
  diff_mode:
    description: Returns what has changed, or would have changed in check mode, when in diff mode.
    support: full
    details:
      - Only the fields that change are shown.
notes:
  - The contract of the service names this resource without its paths. The module follows the service's published API document.
  - A request is sent once. If its response is lost, the resource shows whether it was carried out, as with M(clouddb.control.api_request).
"""

    # Where a resource belongs to a project.
    PROJECT = r"""
options:
  project:
    description:
      - Id or name of the project.
    type: str
    required: true
  org_id:
    description:
      - Organization of the project. Some accounts require it to find a project by its name.
    type: str
"""

    # Where a resource belongs to a branch.
    BRANCH = r"""
options:
  project:
    description:
      - Id or name of the project.
    type: str
    required: true
  org_id:
    description:
      - Organization of the project. Some accounts require it to find a project by its name.
    type: str
  branch:
    description:
      - Id or name of the branch. If not set, the project's default branch.
    type: str
"""
