# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's projects (api.md, GET /projects). Keeps P1, P9 and P11."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ._errors import ClouddbError, InvalidOption
from ._http.client import Client
from ._http.errors import NotFound, RequestFailed, StatusError
from ._lists import Listed, id_from, list_resources, not_found
from ._options import NOT_CREATED_ID, Fields, identifier, not_blank, query_parameters
from ._untrusted import PROJECT_ID, displayable

# As the published API document bounds it.
PAGE_SIZE = 400


def _from_environment(variable: str) -> str | None:
    return os.environ.get(variable) or None


# Wherever projects are listed or created.
ORGANIZATION_OPTIONS: dict[str, dict[str, Any]] = {
    "org_id": {"type": "str", "fallback": (_from_environment, ["CLOUDDB_ORG_ID"])},
}
# For modules about resources that belong to a project.
PROJECT_OPTIONS: dict[str, dict[str, Any]] = {"project": {"type": "str", "required": True}, **ORGANIZATION_OPTIONS}


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
) -> Listed:
    """All projects that the key can access and the filters match (api.md, GET /projects), and the names of the others.

    C(query) is sent with each request. A key that is limited to a project may not list projects, so it gets the project by its id.
    Raises what Client raises when a page can't be fetched.
    """
    reduce = (fields or Fields()).reduce

    def kept(page: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return reduce(filter(filters.matches, page))

    try:
        return list_resources(client, ["projects"], "projects", query, page_size=page_size, kept=kept, id=str)
    except NotFound:
        if filters.project_id in (None, NOT_CREATED_ID):
            raise
        project = client.get("projects", filters.project_id).object("project", id=str)
        return Listed(kept([project]), [], [], {str(project.get("name", ""))})
    except StatusError as error:
        add_organizations(error, client)
        raise


def add_organizations(error: ClouddbError, client: Client) -> None:
    """Add the organizations that the key can access to the error of a service that requires one.

    The error stays as it is if they cannot be fetched.
    """
    if not isinstance(error, StatusError) or error.status != 400 or "org_id" not in error.details.get("message", ""):
        return
    try:
        organizations = client.get("users", "me", "organizations").items("organizations", id=str)
    except RequestFailed:
        return
    listed = ", ".join(f"{each['id']} ({displayable(each.get('name'), 100)})" for each in organizations)
    if listed:
        error.add(after=f"Set org_id or CLOUDDB_ORG_ID to one of: {listed}.")


def query_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The query parameters of the list of projects, with those in C(query) and C(org_id)."""
    return {"limit": PAGE_SIZE, **checked_query(params)}


def project_id_from(params: Mapping[str, Any], client: Client, may_be_missing: bool) -> str | None:
    """The id of the project in C(project) or, without a request, in C(project_id); None if both are omitted.

    C(may_be_missing) and errors as of id_from(). Raises what Client raises, too.
    """
    project = params.get("project")
    if project is None or project == NOT_CREATED_ID:
        project_id: str | None = project or identifier(params, "project_id")
        return project_id
    if PROJECT_ID.fullmatch(project):
        # An account may have more projects than a page, or list them for an organization only.
        try:
            return str(client.get("projects", project).object("project", id=str)["id"])
        except NotFound:
            pass
    listed = list_projects(client, query=query_of(params))
    return id_from("project", "project", listed, project, may_be_missing)


def no_project(listed: Listed, filters: Filters, query: Mapping[str, Any]) -> ClouddbError:
    """The error if no project was found; its message names what was asked for."""
    wanted = {option: value for option, value in filters._asdict().items() if value is not None}
    conditions = [f"{option} '{value}'" for option, value in wanted.items()]
    conditions += [f"query {name}={value}" for name, value in query.items()]
    problem = f"There is no project with {' and '.join(conditions)}." if conditions else "There are no projects."
    if filters.project_id in listed.names:
        problem += " This is the name of a project: set name."
    return not_found(problem, listed, filters.name, {**wanted, **({"query": dict(query)} if query else {})})


def checked_query(params: Mapping[str, Any]) -> dict[str, Any]:
    """The options C(query) and C(org_id) as query parameters; empty when both are None.

    Raises InvalidOption for the parameters of paging, for two organizations, and for values that query_parameters() refuses.
    """
    query, org_id = params.get("query") or {}, params.get("org_id")
    for name in {"limit", "cursor"}.intersection(query):
        raise InvalidOption("query", f"must not contain {name}. All pages are fetched anyway.")
    if not org_id:
        return query_parameters("query", query)
    if query.get("org_id", org_id) != org_id:
        raise InvalidOption(
            "query", f"its org_id is not {org_id}, which org_id or CLOUDDB_ORG_ID sets. Set org_id only."
        )
    return query_parameters("query", {**query, "org_id": org_id})


def checked_filters(params: Mapping[str, Any]) -> Filters:
    """The options C(project_id), C(name) and C(region_id). Raises InvalidOption for blank values."""
    return Filters(identifier(params, "project_id"), not_blank(params, "name"), not_blank(params, "region_id"))
