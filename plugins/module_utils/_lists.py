# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Complete lists, what they have by id or name, and the errors about what they lack. Keeps P1, P9, P11 and P12."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from ._errors import ClouddbError, InvalidOption
from ._http.client import Client
from ._http.errors import StatusError
from ._http.pages import first_page, may_refuse_parameter, pages
from ._http.response import Response
from ._options import NOT_CREATED_ID
from ._untrusted import displayable

# The lists whose C(search) finds items by a part of their names or ids (published API document), by the last segment of their path.
SEARCHABLE = frozenset({"projects", "shared", "branches"})
MAX_SIMILAR = 5
# Comparing more candidates could take longer than the deadline allows.
MAX_COMPARED = 2000


class ResourceNotFound(ClouddbError):
    """There is no such resource as the options select."""

    def __init__(self, message: str, details: Mapping[str, Any]) -> None:
        super().__init__("not_found", message, dict(details))


class Listed(NamedTuple):
    """The resources of a list, the ids of projects that the service could not include, a warning about these, and all names."""

    items: list[dict[str, Any]]
    unavailable_ids: list[str]
    warnings: list[str]
    names: set[str]


def list_resources(
    client: Client,
    segments: Sequence[str],
    field: str | None,
    query: Mapping[str, Any] | None = None,
    first: Response | None = None,
    page_size: int | None = None,
    kept: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list,
    check: Callable[[Response], None] | None = None,
    **types: type,
) -> Listed:
    """Fetch all pages of a list. C(kept) returns what is kept of the items of a page; the others are as of pages().

    C(check) is called with the first response, before its items are read. Raises what Client raises.
    """
    if check:
        first = first_page(client, *segments, query=query, page_size=page_size)
        check(first)
    items: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    unavailable: dict[str, None] = {}
    for page in pages(client, *segments, field=field, query=query, page_size=page_size, first=first, **types):
        items += kept(page.items)
        # Some resources have no id.
        names.update((str(item.get("id", item.get("name"))), str(item.get("name", ""))) for item in page.items)
        unavailable.update(dict.fromkeys(_unavailable_ids(page.response)))
    # The service may be able to include a project by the time that it lists another page.
    missing = [project_id for project_id in unavailable if project_id not in names]
    problem = f"The project list is incomplete. The service could not include: {', '.join(missing)}. Try again later."
    return Listed(items, missing, [problem] if missing else [], {*names.values()})


def _unavailable_ids(page: Response) -> list[str]:
    """The ids of projects that the service could not include in this page of its list. Raises UnexpectedResponse."""
    ids = page.json.get("unavailable_project_ids") if isinstance(page.json, dict) else None
    if not isinstance(ids, (list, type(None))):
        raise page.unexpected("its field 'unavailable_project_ids' should be an array")
    return list(map(page.require_id, ids or []))


def search_named(
    client: Client,
    segments: Sequence[str],
    field: str | None,
    name: str,
    query: Mapping[str, Any] | None = None,
    kept: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list,
    or_all: bool = True,
    **options: Any,
) -> Listed:
    """What a list has by this id or name, exactly or as a part: what the service finds, else the complete list.

    So the list lacks nothing of this id or name, and if it has nothing of it, it has the names that are near, unless C(or_all) is
    false. C(options) are those of list_resources(). Raises what Client raises.
    """
    is_found = is_ignored = False

    def noted(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        nonlocal is_found, is_ignored
        for item in items:
            values = [str(item.get(key) or "") for key in ("id", "name")]
            is_found = is_found or name in values
            is_ignored = is_ignored or not any(name.casefold() in value.casefold() for value in values)
        return kept(items)

    if segments[-1] in SEARCHABLE and "search" not in (query or {}):
        try:
            searched = {**(query or {}), "search": name}
            found = list_resources(client, segments, field, searched, kept=noted, **options)
        except StatusError as error:
            if not may_refuse_parameter(error):
                raise
        else:
            # A service that ignores the parameter has returned the complete list.
            if is_found or is_ignored or not or_all:
                return found
    return list_resources(client, segments, field, query, kept=noted, **options)


def require_complete(listed: Listed, name: str) -> None:
    """Raise ClouddbError for a name that is looked up in an incomplete list: what the service left out may have the same name."""
    if listed.warnings:
        message = f"'{name}' was not looked up by its name. {listed.warnings[0]} Until then, set ids instead of names."
        details = {"name": name, "unavailable_project_ids": listed.unavailable_ids}
        raise ClouddbError("incomplete_list", message, details)


def id_from(option: str, noun: str, listed: Listed, text: str, may_be_missing: bool, place: str = "") -> str:
    """The id of the only resource with this id or name, which an option has; C(noun) is what the resource is, C(place) where.

    With C(may_be_missing), an earlier task would create one that is not there: NOT_CREATED_ID. Raises ResourceNotFound,
    InvalidOption and what require_complete() raises.
    """
    require_complete(listed, text)
    found = [str(each["id"]) for each in listed.items if each.get("id") and text in (each["id"], each.get("name"))]
    if len(found) > 1:
        ids = ", ".join(found)
        problem = f"'{text}' is the id or the name of several: {ids}. Set the id of one, or rename one."
        raise InvalidOption(option, problem)
    if not found and not may_be_missing:
        raise there_is_no(option, noun, listed, text, place)
    return found[0] if found else NOT_CREATED_ID


def there_is_no(option: str, noun: str, listed: Listed, name: str, place: str = "") -> ClouddbError:
    """The error for an option that names a resource that is not in the list; C(noun) is what the resource is, C(place) where."""
    return not_found(f"{option}: there is no {noun} '{name}'{place}.", listed, name, {"option": option})


def not_found(problem: str, listed: Listed, name: str | None, details: Mapping[str, Any]) -> ClouddbError:
    """The error for what the list lacks: C(problem), and if it was selected by C(name), similar names or the few that there are."""
    others = listed.names - {""} if name and name not in listed.names else set()
    near = [displayable(each, 100) for each in similar(name or "", others)]
    hints = [f"Did you mean {' or '.join(near)}?"] if near else []
    if not near and 0 < len(others) <= MAX_SIMILAR:
        hints = [f"There are: {', '.join(displayable(each, 100) for each in sorted(others))}."]
    if listed.warnings:
        message = " ".join([problem, *hints, *listed.warnings])
        return ClouddbError("incomplete_list", message, {**details, "unavailable_project_ids": listed.unavailable_ids})
    hints = hints or ["Check the options, and what the API key may access."]
    return ResourceNotFound(f"{problem} {hints[0]}", details)


def similar(text: str, candidates: Iterable[str], least: float = 0.6) -> list[str]:
    """The candidates similar to this text, whatever their case, the most similar first; none of too many to compare.

    C(least) is the least similarity, from 0 to 1.
    """
    by_lower_case = {candidate.lower(): candidate for candidate in sorted(candidates, reverse=True)}
    if len(by_lower_case) > MAX_COMPARED:
        return []
    return [by_lower_case[near] for near in get_close_matches(text.lower(), by_lower_case, MAX_SIMILAR, least)]


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """The end of a message about an option or argument that does not exist: similar ones, or all."""
    names = sorted(known)
    near = " or ".join(similar(name, names)[:2])
    return f"there is no such {kind}. " + (f"Did you mean {near}?" if near else f"The {kind}s are {', '.join(names)}.")
