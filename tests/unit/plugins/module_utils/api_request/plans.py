# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of requests about a branch, and the branch."""

from __future__ import annotations

from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._api_request.plan import Find, Plan

BRANCHES = ("projects", "p", "branches")
BRANCH = (*BRANCHES, "{id}")
BY_NAME = Find(BRANCHES, "branches", {"name": "preview"}, {"limit": 3})


def plan(
    method: str,
    body: Any = None,
    find: Find | None = BY_NAME,
    segments: tuple[str, ...] = BRANCH,
    accept: tuple[int, ...] = (),
    wait: bool = False,
) -> Plan:
    """A plan that accepts each success, and the statuses C(accept)."""
    return Plan(method, segments, {}, body, find, {*range(200, 300), *accept}, False, wait)


def branch(name: str = "preview", **fields: Any) -> dict[str, Any]:
    return {"id": "br-1", "name": name, **fields}
