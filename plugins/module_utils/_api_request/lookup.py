# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the object that a task is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .._errors import ClouddbError, StatusError
from .._http.client import Client, path_of
from .._http.pagination import pages
from .._http.response import Response
from .._untrusted import displayable
from .compare import contains, fields_of
from .path import fill
from .plan import Find, Object, Plan

MAX_NAMED = 10


class AmbiguousMatch(ClouddbError):
    """Several objects match C(find)."""

    kind = "ambiguous_match"


class NoMatch(ClouddbError):
    """No object matches C(find), and the request needs one, or would create one that does not match either."""

    kind = "no_match"


class IncompleteList(ClouddbError):
    """The service could not include all objects in its list."""

    kind = "incomplete_list"


class Lookup(NamedTuple):
    """What was found, and the fields of C(find.match) that no object of the list has. They may be misspelled."""

    found: Object | None
    unknown: list[str]


def no_match(plan: Plan) -> NoMatch:
    """The error for a request that needs an object."""
    return NoMatch(f"No object matches find, so {plan.name} was not sent. Check find.match and find.path.")


def find_objects(client: Client, find: Find, match: Mapping[str, Any]) -> tuple[list[Object], set[str]]:
    """All objects of the list that match, on any page, and the fields that its objects have. Raises what Client raises.

    Raises IncompleteList if none matches and the service says that objects are missing.
    """
    found: list[Object] = []
    fields: set[str] = set()
    unavailable: set[str] = set()
    listed: set[str] = set()
    for page in pages(client, *find.segments, field=find.field, query=find.query):
        found += [item for item in page.items if contains(item, match)]
        fields.update(*page.items)
        unavailable |= unavailable_in(page.response)
        listed |= ids_of(page.items)
    unavailable -= listed
    if unavailable and not found:
        raise incomplete(find, unavailable)
    return found, fields


def unavailable_in(response: Response) -> set[str]:
    """The ids of the objects that the service could not include in this page. Another page may have them."""
    ids = response.json.get("unavailable_project_ids") if isinstance(response.json, dict) else None
    return set(map(str, ids)) if isinstance(ids, list) else set()


def ids_of(items: Iterable[Object]) -> set[str]:
    """The ids of these objects."""
    return {str(item.get("id")) for item in items}


def incomplete(find: Find, unavailable: set[str]) -> IncompleteList:
    """The error for a list that may lack the object."""
    return IncompleteList(f"No object matches find, but the list {is_incomplete(find.segments, unavailable)}")


def is_incomplete(segments: Sequence[str], unavailable: set[str]) -> str:
    """The rest of a sentence about an incomplete list, and what to do."""
    ids = displayable(", ".join(sorted(unavailable)))
    return f"{path_of(segments)} is incomplete. The service could not include: {ids}. Try again later."


def look_up(client: Client, plan: Plan) -> Lookup:
    """Find the object that the task is about, if there is one and a C(find). Raises AmbiguousMatch.

    Also finds an object that has been changed already, because the change may be one of the fields it is found by.
    """
    if plan.find is None:
        return Lookup(None, [])
    found, listed = find_objects(client, plan.find, plan.find.match)
    if not found and plan.method in ("PATCH", "PUT"):
        fields = fields_of(plan.body, {})
        changed = {field: fields[field] for field in plan.find.match if field in fields}
        if changed:
            found, listed = find_objects(client, plan.find, {**plan.find.match, **changed})
    unknown = [field for field in plan.find.match if listed and field not in listed]
    return Lookup(_detailed(client, plan, single_object(found, plan)), unknown)


def find_object(client: Client, plan: Plan) -> Object | None:
    """What look_up() found."""
    return look_up(client, plan).found


def check_unknown(plan: Plan, lookup: Lookup) -> list[str]:
    """Warnings if an object that is to be deleted lacks fields that no object has. Raises NoMatch for one that is to be created."""
    fields = [field for field in lookup.unknown if field not in fields_of(plan.body, {})]
    if lookup.found or not (plan.find and fields):
        return []
    problem = f"No object of the list {path_of(plan.find.segments)} has the field {' or '.join(fields)} of find.match"
    if plan.method == "POST":
        raise NoMatch(
            f"{problem}, and body does not set it, so each run would create an object. Check the field's name."
        )
    return [f"{problem}, so {plan.name} was not sent. Check the field's name."] if plan.method == "DELETE" else []


def find_again(client: Client, plan: Plan, found: Object | None) -> Object | None:
    """The object after the request; by its id if it is known, because the request may have changed what it is found by."""
    if plan.find and found and found.get("id") is not None:
        objects, _fields = find_objects(client, plan.find, {"id": found["id"]})
        return _detailed(client, plan, single_object(objects, plan))
    return find_object(client, plan)


def _detailed(client: Client, plan: Plan, found: Object | None) -> Object | None:
    """The object with all its fields, if those of its list are too few to compare it with the body of a PATCH or PUT."""
    if found is None or plan.method not in ("PATCH", "PUT") or fields_of(plan.body, found).keys() <= found.keys():
        return found
    try:
        response = client.request("GET", fill(plan.segments, found))
    except StatusError:
        # Without a GET for this path, the fields count as different.
        return found
    shown = object_in(response, plan)
    return {**found, **shown} if shown and shown.get("id") == found.get("id") else found


def object_in(response: Response, plan: Plan) -> Object | None:
    """The object that the response is about: C(branch) for a path with C(branches), or the response itself if it has an id."""
    if not isinstance(response.json, dict):
        return None
    for segment in reversed(plan.segments):
        for name, value in response.json.items():
            if isinstance(value, dict) and segment.startswith(name):
                return value
    return response.json if "id" in response.json else None


def single_object(found: list[Object], plan: Plan) -> Object | None:
    """The only one of the objects, or None if there is none. Raises AmbiguousMatch."""
    if len(found) < 2:
        return found[0] if found else None
    named = ", ".join(displayable(item.get("id", item.get("name", "?")), 100) for item in found[:MAX_NAMED])
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    raise AmbiguousMatch(
        f"{plan.name} is about one object, but {len(found)} match find: {named}{more}. Add a field to find.match that only one has."
    )


def is_fulfilled(plan: Plan, found: Object | None) -> bool:
    """Whether the object shows that nothing has to be sent."""
    if plan.find is None:
        return False
    if plan.method == "DELETE":
        return found is None
    if found is None:
        return False
    # Two objects of the body may have a field of the same name.
    return plan.method == "POST" or all(
        contains(found, fields_of({name: value}, found)) for name, value in (plan.body or {}).items()
    )
