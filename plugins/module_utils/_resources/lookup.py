# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the resource that a task is about, in its list or by its own path. Keeps P1, P3 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._http.client import Client, path_of
from .._http.response import Response, pages
from .._untrusted import displayable
from .compare import contains, fields_of
from .plan import Find, Plan, Resource, fill
from .state import ABSENT, GOING, own_state

MAX_NAMED = 10


class AmbiguousMatch(ClouddbError):
    """Several resources match C(find)."""

    kind = "ambiguous_match"


class IncompleteList(ClouddbError):
    """The service could not include all resources in its list."""

    kind = "incomplete_list"


class Listed(NamedTuple):
    """The resources of the list C(path), the ids of those that the service could not include, and the response with the first page."""

    path: str
    items: list[Resource]
    unavailable: list[str]
    first: Response

    @property
    def problem(self) -> str:
        """What an incomplete list lacks, and what to do."""
        ids = displayable(", ".join(self.unavailable))
        return f"The list {self.path} is incomplete. The service could not include: {ids}. Try again later."


def list_resources(
    client: Client,
    segments: Sequence[str],
    field: str | None,
    query: Mapping[str, Any] | None = None,
    first: Response | None = None,
) -> Listed:
    """Fetch all pages of a list. C(first) is the response with the first page, if it has been fetched already.

    Raises what Client raises.
    """
    first = first or client.get(*segments, query=query)
    items: list[Resource] = []
    unavailable: set[str] = set()
    for page in pages(client, *segments, field=field, query=query, first=first):
        items += page.items
        ids = page.response.json.get("unavailable_project_ids") if isinstance(page.response.json, dict) else None
        unavailable.update(map(str, ids if isinstance(ids, list) else []))
    # Another page may have them.
    return Listed(path_of(segments), items, sorted(unavailable - {str(item.get("id")) for item in items}), first)


def require_array(response: Response, field: str | None) -> None:
    """Raise InvalidOption for a list whose array has another name than C(find.list)."""
    json = response.json
    if isinstance(json, list) and field is not None:
        raise InvalidOption("find.list", "the response is the array itself. Omit list")
    if not isinstance(json, dict) or isinstance(json.get(field or ""), list):
        return
    arrays = ", ".join(displayable(name, 100) for name, value in json.items() if isinstance(value, list))
    if arrays or field in json:
        problem = "the response is not an array" if field is None else f"the list has no array '{field}'"
        raise InvalidOption("find.list", f"{problem}. It has: {arrays or 'none'}")


def find_resource(client: Client, plan: Plan, find: Find, known: Resource | None = None) -> Resource | None:
    """The resource that the task is about: C(known) by its id once there is one, until then the one that C(find) matches.

    It is also found by the values that the request gives it, because an earlier run may have changed it. Raises what
    Client raises, AmbiguousMatch, and IncompleteList if none matches a list that is not complete.
    """
    wanted = [dict(find.match)]
    if known and known.get("id") is not None:
        # The response to a POST may have been that of a gateway.
        wanted = [{"id": known["id"]}, *(wanted if plan.method == "POST" else [])]
    elif plan.changes:
        fields = fields_of(plan.body, {})
        wanted.append({field: fields.get(field, value) for field, value in find.match.items()})
    first = client.get(*find.segments, query=find.query)
    if plan.options is None:
        require_array(first, find.field)
    listed = list_resources(client, find.segments, find.field, find.query, first)
    matching = ([item for item in listed.items if contains(item, match)] for match in wanted)
    return single_resource(next(filter(None, matching), []), listed, plan)


def single_resource(found: Sequence[Resource], listed: Listed, plan: Plan) -> Resource | None:
    """The only one of the resources; one that is being deleted counts only if there is no other.

    Raises AmbiguousMatch, and IncompleteList if there is none, but the list may lack it.
    """
    found = [item for item in found if own_state(item) != ABSENT]
    if len(found) > 1:
        found = [item for item in found if own_state(item) != GOING] or found
    if not found and listed.unavailable:
        raise IncompleteList(f"No resource matches {plan.selector}. {listed.problem}")
    if len(found) < 2:
        return found[0] if found else None
    named = ", ".join(name_of(item) for item in found[:MAX_NAMED])
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    is_module = plan.options is not None
    advice = "Set the id of one, or rename one." if is_module else "Add a field to find.match that only one has."
    problem = f"{plan.name} is about one resource, but {len(found)} match {plan.selector}"
    raise AmbiguousMatch(f"{problem}: {named}{more}. {advice}")


def name_of(resource: Mapping[str, Any]) -> str:
    """What identifies the resource in messages: its id, else its name."""
    return displayable(resource.get("id", resource.get("name", "?")), 100)


def fetch_resource(client: Client, plan: Plan, known: Resource) -> Resource | None:
    """The resource by its own path. Raises what Client raises, such as NotFound for a path that has no GET."""
    segments = (*plan.segments, str(known["id"])) if plan.method == "POST" else fill(plan.segments, known)
    return shown_resource(client.request("GET", segments).json, plan)


def shown_resource(json: Any, plan: Plan) -> Resource | None:
    """The resource that a response shows: C(branch) for a path with C(branches), or the response itself if it has an id."""
    if not isinstance(json, dict):
        return None
    for segment in reversed(plan.segments):
        for name, value in json.items():
            if isinstance(value, dict) and segment.startswith(name):
                return value
    return json if "id" in json else None
