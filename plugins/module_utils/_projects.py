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
from ._options import identifier, not_blank, query_parameters


class Projects(NamedTuple):
    """The projects, and the ids of those that the service could not include in its list."""

    projects: list[dict[str, Any]]
    unavailable_ids: list[str]

    def warnings(self) -> list[str]:
        """A warning that names the missing projects; empty when the list is complete."""
        if not self.unavailable_ids:
            return []
        ids = ", ".join(self.unavailable_ids)
        return [f"The project list is incomplete. The service could not include: {ids}. Try again later."]


class Filters(NamedTuple):
    """Values that fields of a project must equal; None matches any value."""

    project_id: str | None = None
    name: str | None = None
    region_id: str | None = None

    def matches(self, project: Mapping[str, Any]) -> bool:
        wanted = {"id": self.project_id, "name": self.name, "region_id": self.region_id}
        return all(value in (None, project.get(field)) for field, value in wanted.items())


def list_projects(
    client: Client, filters: Filters = Filters(), query: Mapping[str, Any] | None = None, page_size: int | None = None
) -> Projects:
    """All projects that the key can access and the filters match, with every field that the service sent (api.md, GET /projects).

    C(query) is sent with each request. Raises what Client raises when a page can't be fetched.
    """
    projects: list[dict[str, Any]] = []
    unavailable: dict[str, None] = {}
    for page in pages(client, "projects", field="projects", query=query, page_size=page_size, id=str):
        projects += [project for project in page.items if filters.matches(project)]
        ids = page.response.object().get("unavailable_project_ids") or []
        if not isinstance(ids, list):
            raise page.response.unexpected("its field 'unavailable_project_ids' should be an array")
        unavailable.update(dict.fromkeys(map(page.response.require_id, ids)))
    return Projects(projects, list(unavailable))


def checked_query(params: Mapping[str, Any]) -> dict[str, Any]:
    """The option C(query) as query parameters; empty when it is None.

    Raises InvalidOption for the parameters of paging, and for values other than strings, numbers and lists of them.
    """
    for name in params["query"] or {}:
        if name == "limit":
            raise InvalidOption("query", "must not contain limit. Use page_size instead.")
        if name == "cursor":
            raise InvalidOption("query", "must not contain cursor. All pages are fetched anyway.")
    return query_parameters("query", params["query"])


def checked_filters(params: Mapping[str, Any]) -> Filters:
    """The options C(project_id), C(name) and C(region_id). Raises InvalidOption for blank values and other types than strings."""
    for option in Filters._fields:
        if not isinstance(params.get(option), (str, type(None))):
            raise InvalidOption(option, f"must be a string, not {params[option]!r}")
    return Filters(identifier(params, "project_id"), not_blank(params, "name"), not_blank(params, "region_id"))
