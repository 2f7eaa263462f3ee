# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account's projects (api.md, GET /projects)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ._errors import ClouddbError, InvalidOption
from ._fields import Fields
from ._http.client import Client
from ._http.pagination import next_cursor, pages
from ._options import MAX_SIMILAR, identifier, not_blank, query_parameters, similar
from ._untrusted import displayable


class ProjectNotFound(ClouddbError):
    """No project matches, although one is required."""

    kind = "not_found"


class ProjectPage(NamedTuple):
    """The projects of one page that no earlier page had, and the ids of those that the service could not include."""

    projects: list[dict[str, Any]]
    unavailable_ids: list[str]
    next_cursor: str | None


class Projects(NamedTuple):
    """The projects, and the ids of those that the service could not include in its list.

    C(values) has the values of the filtered fields among all projects that the service listed, by filter, and
    C(alternatives) those among the projects that all other filters match.
    """

    projects: list[dict[str, Any]]
    unavailable_ids: list[str]
    values: dict[str, set[str]]
    alternatives: dict[str, set[str]]

    def warnings(self) -> list[str]:
        """A warning that names the missing projects; empty when the list is complete."""
        if not self.unavailable_ids:
            return []
        ids = ", ".join(self.unavailable_ids)
        return [f"The project list is incomplete. The service could not include: {ids}. Try again later."]


# The field of a project that each filter compares.
FILTERED_FIELDS = {"project_id": "id", "name": "name", "region_id": "region_id"}


class Filters(NamedTuple):
    """Values that fields of a project must equal; None matches any value."""

    project_id: str | None = None
    name: str | None = None
    region_id: str | None = None

    def wanted(self) -> dict[str, str]:
        """The filters that are set."""
        return {option: value for option, value in self._asdict().items() if value is not None}

    def matches(self, project: Mapping[str, Any]) -> bool:
        """Whether the project has all values that are set."""
        return all(project.get(FILTERED_FIELDS[option]) == value for option, value in self.wanted().items())


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
    listed: set[str] = set()
    unavailable: dict[str, None] = {}
    values: dict[str, set[str]] = {option: set() for option in filters.wanted()}
    alternatives: dict[str, set[str]] = {option: set() for option in filters.wanted()}
    for page in project_pages(client, query, page_size):
        projects += fields.reduce(project for project in page.projects if filters.matches(project))
        for option in filters.wanted():
            others = filters._replace(**{option: None})
            values[option].update(_values(option, page.projects))
            alternatives[option].update(_values(option, filter(others.matches, page.projects)))
        listed.update(project["id"] for project in page.projects)
        unavailable.update(dict.fromkeys(page.unavailable_ids))
    # The service may be able to include a project by the time that it lists another page.
    missing = [project_id for project_id in unavailable if project_id not in listed]
    return Projects(projects, missing, values, alternatives)


def project_pages(
    client: Client, query: Mapping[str, Any] | None = None, page_size: int | None = None
) -> Iterator[ProjectPage]:
    """The pages of the project list (api.md, GET /projects). Raises what Client raises when a page can't be fetched."""
    for page in pages(client, "projects", field="projects", query=query, page_size=page_size, id=str):
        ids = page.response.object().get("unavailable_project_ids") or []
        if not isinstance(ids, list):
            raise page.response.unexpected("its field 'unavailable_project_ids' should be an array")
        yield ProjectPage(page.items, list(map(page.response.require_id, ids)), next_cursor(page.response))


def _values(option: str, projects: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    values = (project.get(FILTERED_FIELDS[option]) for project in projects)
    return (value for value in values if isinstance(value, str))


def require_projects(found: Projects, filters: Filters, query: Mapping[str, Any]) -> None:
    """Raise ProjectNotFound if no project was found; the message names what was asked for, and similar values."""
    if found.projects:
        return
    wanted = filters.wanted()
    conditions = [f"{option} '{value}'" for option, value in wanted.items()]
    conditions += [f"query {name}={value}" for name, value in query.items()]
    sentences = [f"There is no project with {' and '.join(conditions)}." if conditions else "There are no projects."]
    if almost := _almost_found(found, wanted):
        sentences.append(almost)
    else:
        for option, value in wanted.items():
            near = similar(value, found.values[option]) if value not in found.values[option] else []
            if near:
                sentences.append(f"Did you mean {option} {_quoted(near)}?")
    sentences += found.warnings() or ["Check the options, and whether the API key may access the project."]
    details: dict[str, Any] = {**wanted, **({"query": dict(query)} if query else {})}
    if found.unavailable_ids:
        details["unavailable_project_ids"] = found.unavailable_ids
    raise ProjectNotFound(" ".join(sentences), details)


def _almost_found(found: Projects, wanted: Mapping[str, str]) -> str:
    """The sentence about projects that only one of the filters excludes, if the others identify a project; empty if there are none."""
    for option in reversed(list(wanted)):
        others = [f"{other} '{value}'" for other, value in wanted.items() if other != option]
        values = sorted(found.alternatives[option])[:MAX_SIMILAR]
        if values and set(wanted) - {option} != {"region_id"} and others:
            subject, verb = ("A project", "has") if len(values) == 1 else ("Projects", "have")
            return f"{subject} with {' and '.join(others)} {verb} {option} {_quoted(values)}."
    return ""


def _quoted(values: Iterable[str]) -> str:
    return " or ".join(f"'{displayable(value, 100)}'" for value in values)


def checked_query(params: Mapping[str, Any]) -> dict[str, Any]:
    """The option C(query) as query parameters; empty when it is None.

    Raises InvalidOption for the parameters of paging, and for names and values that query_parameters() refuses.
    """
    for name in params["query"] or {}:
        if name in ("limit", "cursor"):
            raise InvalidOption("query", f"must not contain {name}. All pages are fetched anyway.")
    return query_parameters("query", params["query"])


def checked_filters(params: Mapping[str, Any]) -> Filters:
    """The options C(project_id), C(name) and C(region_id). Raises InvalidOption for blank values and other types than strings."""
    for option in Filters._fields:
        if not isinstance(params.get(option), (str, type(None))):
            raise InvalidOption(option, f"must be a string, not {params[option]!r}")
    return Filters(identifier(params, "project_id"), not_blank(params, "name"), not_blank(params, "region_id"))
