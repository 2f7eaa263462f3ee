# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's projects (api.md, GET /projects), and the branches that options name. Keeps P1, P9, P11 and P12."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ._errors import ClouddbError, InvalidOption
from ._http.client import Client
from ._http.errors import NotFound, RequestFailed, StatusError
from ._http.pages import pages
from ._lists import Listed, id_from, list_resources, not_found, search_named
from ._options import NOT_CREATED_ID, Fields, identifier, not_blank, query_parameters
from ._untrusted import PROJECT_ID, displayable

PROJECTS = ("projects",)
ORGANIZATION_VARIABLE = "CLOUDDB_ORG_ID"


def _from_environment(variable: str) -> str | None:
    return os.environ.get(variable) or None


# Wherever projects are listed or created.
ORGANIZATION_OPTIONS: dict[str, dict[str, Any]] = {
    "org_id": {"type": "str", "fallback": (_from_environment, [ORGANIZATION_VARIABLE])},
}
# For modules about resources that belong to a project.
PROJECT_OPTIONS: dict[str, dict[str, Any]] = {"project": {"type": "str", "required": True}, **ORGANIZATION_OPTIONS}


class ProjectFilter(NamedTuple):
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
    filters: ProjectFilter = ProjectFilter(),
    query: Mapping[str, Any] | None = None,
    page_size: int | None = None,
    fields: Fields | None = None,
) -> Listed:
    """All projects that the key can access and the filters match (api.md, GET /projects), and the names of others.

    C(query) is sent with each request. Without further parameters than C(org_id), a project that is filtered by its id is fetched by it,
    with all its details. Raises what Client raises when a page can't be fetched, and ClouddbError for an unknown organization.
    """
    query, reduce = query or {}, (fields or Fields()).reduce

    def kept(page: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return reduce(filter(filters.matches, page))

    if filters.project_id is not None and {*query} <= {"org_id"}:
        found = _project_by_id(client, filters.project_id)
        return Listed(kept(found), [], [], {str(each.get("name", "")) for each in found})
    return _list(client, filters.name, query, page_size=page_size, kept=kept)


def _project_by_id(client: Client, project_id: str) -> list[dict[str, Any]]:
    """The project with this id, with all its details; none if there is none that the key can access."""
    if project_id == NOT_CREATED_ID:
        return []
    try:
        return [client.get("projects", project_id).object("project", id=str)]
    except NotFound:
        return []


def _list(client: Client, name: str | None, query: Mapping[str, Any], **options: Any) -> Listed:
    """All projects, or with C(name) those of search_named(). Raises ClouddbError for an unknown organization."""
    try:
        if name is None:
            listed = list_resources(client, PROJECTS, "projects", query, id=str, **options)
        else:
            listed = search_named(client, PROJECTS, "projects", name, query, id=str, **options)
    except StatusError as error:
        if isinstance(error, NotFound):
            require_organization(client, query)
        add_organizations(error, client)
        raise
    if not listed.names:
        require_organization(client, query)
    return listed


def require_organization(client: Client, query: Mapping[str, Any]) -> None:
    """Raise ClouddbError if the organization in C(query), which has no projects, is none that the key can access."""
    org_id = _organization_in(query)
    if org_id is None:
        return
    known = [each["id"] for each in _organizations(client)]
    if org_id in known:
        return
    if not known:
        try:
            client.get("organizations", org_id)
            return
        except NotFound:
            pass
        except StatusError as error:
            if error.transient:
                raise
            return
    problem = f"org_id: there is no organization {displayable(org_id, 100)}{_source(org_id)}, or the API key cannot access it."
    # A key that is limited to a project cannot list organizations either.
    advice = (
        f"Set org_id to one of: {', '.join(known)}."
        if known
        else "Check org_id, and base_url. The API key may be limited to a project: set the id of the project."
    )
    raise ClouddbError("not_found", f"{problem} {advice}", {"option": "org_id"})


def _organizations(client: Client) -> list[dict[str, Any]]:
    """The organizations that the key can access; none if they cannot be fetched, as with the key of an organization."""
    try:
        return client.get("users", "me", "organizations").items("organizations", id=str)
    except RequestFailed:
        return []


def _organization_in(query: Mapping[str, Any]) -> str | None:
    """The C(org_id) of query parameters."""
    values = query.get("org_id")
    org_id = next(iter(values), None) if isinstance(values, list) else values
    return None if org_id is None else str(org_id)


def _source(org_id: str) -> str:
    """Where this C(org_id) comes from, if that is the environment."""
    return f" ({ORGANIZATION_VARIABLE})" if _from_environment(ORGANIZATION_VARIABLE) == org_id else ""


def in_organization(query: Mapping[str, Any]) -> str:
    """The place of projects, as the end of a sentence: the organization in C(query), and where it comes from; empty without one."""
    org_id = _organization_in(query)
    return f" in the organization {displayable(org_id, 100)}{_source(org_id) or ' (org_id)'}" if org_id else ""


def add_organizations(error: ClouddbError, client: Client) -> None:
    """Add the organizations that the key can access to the error of a service that requires one.

    The error stays as it is if they cannot be fetched.
    """
    if not isinstance(error, StatusError) or error.status != 400 or "org_id" not in error.details.get("message", ""):
        return
    listed = ", ".join(f"{each['id']} ({displayable(each.get('name'), 100)})" for each in _organizations(client))
    if listed:
        error.add(after=f"Set org_id or CLOUDDB_ORG_ID to one of: {listed}.")


def project_id_from(params: Mapping[str, Any], client: Client, may_be_missing: bool) -> str:
    """The id of the project with the id or name in C(project).

    What looks like an id is one, if there is a project with it. C(may_be_missing) and errors as of id_from(). Raises what Client
    raises, too.
    """
    project: str = params["project"]
    if project == NOT_CREATED_ID:
        return project
    query, looks_like_id = checked_query(params), PROJECT_ID.fullmatch(project)
    if looks_like_id and (found := _project_by_id(client, project)):
        return str(found[0]["id"])
    try:
        listed = _list(client, project, query)
    except NotFound as error:
        if not looks_like_id:
            raise
        problem = f"project: the API key cannot access {project}. It may be limited to another project."
        raise ClouddbError("not_found", problem, {**error.details, "option": "project"}) from None
    return id_from("project", "project", listed, project, may_be_missing, in_organization(query))


def branch_from(params: Mapping[str, Any], client: Client, may_be_missing: bool) -> tuple[str, str]:
    """The ids of the project and of the branch in the options. C(may_be_missing) and errors as of project_id_from().

    A list of branches shows that what looks like the id of a project is one, so that the project itself need not be fetched.
    """
    project, branch = params["project"], params["branch"]
    if PROJECT_ID.fullmatch(project):
        with suppress(NotFound):
            return project, branch_id_from(branch, client, project, may_be_missing)
    project_id = project_id_from(params, client, may_be_missing)
    return project_id, branch_id_from(branch, client, project_id, may_be_missing)


def branch_id_from(
    branch: str | None, client: Client, project_id: str, may_be_missing: bool, option: str = "branch"
) -> str:
    """The id of the branch with this id or name; None: the default branch. C(may_be_missing) and errors as of id_from()."""
    if NOT_CREATED_ID in (project_id, branch):
        return NOT_CREATED_ID
    segments = ("projects", project_id, "branches")
    if branch is not None:
        listed = search_named(client, segments, "branches", branch)
        return id_from(option, "branch", listed, branch, may_be_missing)
    for page in pages(client, *segments, field="branches"):
        for each in page.items:
            if each.get("default") and each.get("id"):
                return str(each["id"])
    # Not ResourceNotFound, after which there is nothing to delete: the resource may be on any branch.
    problem = f"branch: project {project_id} has no default branch. Set the name of a branch."
    raise ClouddbError("not_found", problem, {"option": "branch"})


def no_project(listed: Listed, filters: ProjectFilter, query: Mapping[str, Any]) -> ClouddbError:
    """The error if no project was found; its message names what was asked for."""
    wanted = {option: value for option, value in filters._asdict().items() if value is not None}
    conditions = [f"{option} '{value}'" for option, value in wanted.items()]
    conditions += [f"query {name}={value}" for name, value in query.items() if name != "org_id"]
    place = in_organization(query)
    problem = f"There is no project with {' and '.join(conditions)}" if conditions else "There are no projects"
    if filters.project_id is None:
        problem += f"{place}."
    else:
        problem += ", or the API key cannot access it."
        if not PROJECT_ID.fullmatch(filters.project_id):
            problem += " If this is the name of a project, set name."
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


def checked_filters(params: Mapping[str, Any]) -> ProjectFilter:
    """The options C(project_id), C(name) and C(region_id). Raises InvalidOption for blank values."""
    return ProjectFilter(identifier(params, "project_id"), not_blank(params, "name"), not_blank(params, "region_id"))
