# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the project and the branch that a resource belongs to, by id or by name. Keeps P1, P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._errors import ClouddbError, InvalidOption
from .._http.client import Client
from .._http.errors import NotFound
from .._missing import similar
from .._options import NOT_CREATED_ID, identifier
from .._untrusted import PROJECT_ID
from .lookup import Listed, list_resources

# As the published API document bounds it.
PROJECTS_PAGE_SIZE = 400


# What the options name that are not named after it.
_NAMED = {"parent": "branch", "owner": "user"}


class ResourceNotFound(ClouddbError):
    """There is no such resource as an option names."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__("not_found", f"{option}: {problem}", {"option": option})


# For modules about resources that belong to a project.
PROJECT_OPTIONS: dict[str, dict[str, Any]] = {"project": {"type": "str", "required": True}, "org_id": {"type": "str"}}


def query_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The query parameters of the list of projects, with those in C(query) or C(org_id)."""
    further = {"org_id": params["org_id"]} if params.get("org_id") else params.get("query") or {}
    return {"limit": PROJECTS_PAGE_SIZE, **further}


def project_id_from(params: Mapping[str, Any], client: Client, may_be_missing: bool) -> str | None:
    """The id of the project in C(project) or, without a request, in C(project_id); None if both are omitted.

    With C(may_be_missing), an earlier task would create a project that is not there: NOT_CREATED_ID. Raises
    ResourceNotFound, InvalidOption, ClouddbError and what Client raises.
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
    listed = list_resources(client, ["projects"], "projects", query_of(params))
    return _selected("project", listed, project, may_be_missing)


def branch_id_from(
    branch: str | None, client: Client, project_id: str, may_be_missing: bool, option: str = "branch"
) -> str:
    """The id of the branch with this id or name; None: the default branch. C(may_be_missing) and errors as of project_id_from()."""
    if NOT_CREATED_ID in (project_id, branch):
        return NOT_CREATED_ID
    listed = list_resources(client, ("projects", project_id, "branches"), "branches")
    if branch is not None:
        return _selected(option, listed, branch, may_be_missing)
    for each in listed.items:
        if each.get("default") and each.get("id"):
            return str(each["id"])
    raise ResourceNotFound("branch", f"project {project_id} has no default branch. Set the name of a branch.")


def _selected(option: str, listed: Listed, text: str, may_be_missing: bool) -> str:
    """The id of the only resource with this id or name."""
    found = [str(each["id"]) for each in listed.items if each.get("id") and text in (each["id"], each.get("name"))]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(found)
        raise InvalidOption(
            option, f"'{text}' is the id or the name of several: {ids}. Set the id of one, or rename one."
        )
    if may_be_missing:
        return NOT_CREATED_ID
    raise not_found(option, listed, text)


def not_found(option: str, listed: Listed, text: str) -> ClouddbError:
    """The error for an option that names a resource that is not in its list."""
    problem = f"there is no {_NAMED.get(option, option)} '{text}'."
    if listed.warnings:
        return ClouddbError("incomplete_list", f"{option}: {problem} {listed.warnings[0]}")
    near = similar(text, {str(each.get("name")) for each in listed.items})
    hint = f"Did you mean {' or '.join(near)}?" if near else "Check its name, and whether the API key may access it."
    return ResourceNotFound(option, f"{problem} {hint}")
