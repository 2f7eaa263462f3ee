# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's projects (api.md, GET /projects)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ._errors import InvalidOption
from ._http.client import Client
from ._http.pagination import pages
from ._options import not_blank


class Projects(NamedTuple):
    """The projects, and the ids of those that the service says it could not include."""

    projects: list[dict[str, Any]]
    unavailable_ids: list[str]

    def warnings(self) -> list[str]:
        """The warning that a list with gaps calls for."""
        if not self.unavailable_ids:
            return []
        return [f"The service's project list is incomplete; it could not include: {', '.join(self.unavailable_ids)}."]


class Filters(NamedTuple):
    """Fields that a project must have exactly as given here; None admits any value."""

    project_id: str | None = None
    name: str | None = None
    region_id: str | None = None

    def admits(self, project: Mapping[str, Any]) -> bool:
        wanted = {"id": self.project_id, "name": self.name, "region_id": self.region_id}
        return all(value in (None, project.get(field)) for field, value in wanted.items())


def list_projects(
    client: Client, filters: Filters = Filters(), query: Mapping[str, Any] | None = None, page_size: int | None = None
) -> Projects:
    """All projects that the key reaches and the filters admit, every field as the service sent it.

    C(query) goes with each request.
    """
    projects: list[dict[str, Any]] = []
    unavailable: dict[str, None] = {}
    for page in pages(client, "projects", field="projects", query=query, page_size=page_size):
        projects += [project for project in page.items if filters.admits(project)]
        ids = page.response.object().get("unavailable_project_ids") or []
        if not isinstance(ids, list):
            raise page.response.unexpected("its field 'unavailable_project_ids' should be an array")
        unavailable.update(dict.fromkeys(str(project_id) for project_id in ids))
    return Projects(projects, list(unavailable))


def checked_query(params: Mapping[str, Any]) -> dict[str, Any]:
    """The option C(query), which may be None, as it is sent.

    Raises InvalidOption for parameters that paging sends, and for values that are no text.
    """
    query = params["query"] or {}
    for name, value in query.items():
        if name == "limit":
            raise InvalidOption("query", "must not hold limit; use page_size")
        if name == "cursor":
            raise InvalidOption("query", "must not hold cursor; all pages are read in any case")
        if not all(isinstance(part, (str, int, float)) for part in _parts(value)):
            raise InvalidOption("query", f"the value of {name} must be a string or a number, or a list of them")
    return {
        name: [str(part).lower() if isinstance(part, bool) else part for part in _parts(value)]
        for name, value in query.items()
    }


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def checked_filters(params: Mapping[str, Any]) -> Filters:
    """The options C(project_id), C(name) and C(region_id). Raises InvalidOption for empty ones, and for those that are no text."""
    for option in Filters._fields:
        if not isinstance(params.get(option), (str, type(None))):
            raise InvalidOption(option, f"must be a string, not {params[option]!r}")
    return Filters(*(not_blank(params, option) for option in Filters._fields))
