# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's projects (api.md, GET /projects)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.clouddb.control.plugins.module_utils.client import Client
from ansible_collections.clouddb.control.plugins.module_utils.paging import pages


class Projects(NamedTuple):
    """The projects, and the ids of those that the service says it could not include."""

    projects: list[dict[str, Any]]
    unavailable_ids: list[str]

    def warnings(self) -> list[str]:
        """The warning that a list with gaps calls for."""
        if not self.unavailable_ids:
            return []
        return [f"The service's project list is incomplete; it could not include: {', '.join(self.unavailable_ids)}."]


def list_projects(client: Client, query: Mapping[str, Any] | None = None, page_size: int | None = None) -> Projects:
    """All projects that the key reaches, every field as the service sent it; C(query) goes with each request."""
    projects: list[dict[str, Any]] = []
    unavailable: dict[str, None] = {}
    for page in pages(client, "projects", field="projects", query=query, page_size=page_size):
        projects += page.items
        ids = page.answer.object().get("unavailable_project_ids") or []
        if not isinstance(ids, list):
            raise page.answer.unexpected("its field 'unavailable_project_ids' should be an array")
        unavailable.update(dict.fromkeys(str(project_id) for project_id in ids))
    return Projects(projects, list(unavailable))
