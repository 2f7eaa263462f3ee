# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's projects (api.md, GET /projects). Keeps P1 and P11."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ._errors import InvalidOption
from ._http.client import Client
from ._http.pages import pages
from ._http.response import Response
from ._options import Fields, identifier, not_blank, query_parameters


class Projects(NamedTuple):
    """The projects, the ids of those that the service could not include, a warning if there are any, and all listed names."""

    projects: list[dict[str, Any]]
    unavailable_ids: list[str]
    warnings: list[str]
    names: set[str]


class Filters(NamedTuple):
    """Values that fields of a project must equal; None matches any value."""

    project_id: str | None = None
    name: str | None = None
    region_id: str | None = None

    def matches(self, project: Mapping[str, Any]) -> bool:
        """Whether the project has all values that are set."""
        wanted = {"id": self.project_id, "name": self.name, "region_id": self.region_id}
        return all(value is None or project.get(field) == value for field, value in wanted.items())


def list_projects(
    client: Client,
    filters: Filters = Filters(),
    query: Mapping[str, Any] | None = None,
    page_size: int | None = None,
    fields: Fields | None = None,
) -> Projects:
    """All projects that the key can access and the filters match (api.md, GET /projects).

    C(query) is sent with each request. Raises what Client raises when a page can't be fetched.
    """
    fields = fields or Fields()
    projects: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    unavailable: dict[str, None] = {}
    for page in pages(client, "projects", field="projects", query=query, page_size=page_size, id=str):
        projects += fields.reduce(filter(filters.matches, page.items))
        names.update((project["id"], str(project.get("name", ""))) for project in page.items)
        unavailable.update(dict.fromkeys(unavailable_ids(page.response)))
    # The service may be able to include a project by the time that it lists another page.
    missing = [project_id for project_id in unavailable if project_id not in names]
    return Projects(projects, missing, incomplete_list(missing), {*names.values()})


def unavailable_ids(page: Response) -> list[str]:
    """The ids of projects that the service could not include in this page of its list. Raises UnexpectedResponse."""
    ids = page.json.get("unavailable_project_ids") if isinstance(page.json, dict) else None
    if not isinstance(ids, (list, type(None))):
        raise page.unexpected("its field 'unavailable_project_ids' should be an array")
    return list(map(page.require_id, ids or []))


def incomplete_list(ids: Collection[str]) -> list[str]:
    """A warning that names the unavailable projects; empty if there are none."""
    named = ", ".join(ids)
    return [f"The project list is incomplete. The service could not include: {named}. Try again later."] if ids else []


def checked_query(params: Mapping[str, Any]) -> dict[str, Any]:
    """The option C(query) as query parameters; empty when it is None.

    Raises InvalidOption for the parameters of paging, and for values that query_parameters() refuses.
    """
    for name in {"limit", "cursor"}.intersection(params["query"] or {}):
        raise InvalidOption("query", f"must not contain {name}. All pages are fetched anyway.")
    return query_parameters("query", params["query"])


def checked_filters(params: Mapping[str, Any]) -> Filters:
    """The options C(project_id), C(name) and C(region_id). Raises InvalidOption for blank values."""
    return Filters(identifier(params, "project_id"), not_blank(params, "name"), not_blank(params, "region_id"))
