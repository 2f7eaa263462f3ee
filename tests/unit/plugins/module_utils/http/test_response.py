# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paged lists are read to their end, and a list that is not complete or a response of another shape raises an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import (
    NotFound,
    StatusError,
    UnexpectedResponse,
)
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._http.pages import pages
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, page, scripted
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    Reply,
    ScriptedService,
    reply,
    scripted_service,
)


def things(*ids: str, cursor: str | None = None) -> Reply:
    return page("things", [{"id": thing} for thing in ids], cursor)


def read(client: Client, **options: Any) -> list[list[str]]:
    """The ids on each page."""
    found = pages(client, "things", field="things", id=str, **options)
    return [[item["id"] for item in a_page.items] for a_page in found]


# Any valid Unicode text. Ids are path segments, so they are not blank and not dots only.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
ids = st.from_regex(r"[A-Za-z0-9_.-]{1,128}", fullmatch=True).filter(lambda text: text.strip("."))
cursors = texts.filter(lambda text: text != "more") | st.sampled_from(
    ["2026-11-21T08:00:00.123456789+02:00", "%2B", "a&cursor=b#c", " ", "0", "\r\n", "\0"]
)


@pytest.fixture(scope="module")
def service() -> Iterator[ScriptedService]:
    """A scripted service for all examples."""
    with scripted_service() as running:
        yield running
        running.script.clear()


@given(st.data())
def test_every_item_is_listed_once(service: ScriptedService, data: st.DataObject) -> None:
    items = data.draw(st.lists(ids, unique=True, min_size=1, max_size=12))
    parts: list[list[str]] = []
    rest = items
    while rest:
        # Each page has some new items, or none, and repeats some of earlier pages.
        new = data.draw(st.integers(0 if parts else 1, len(rest)))
        seen = items[: len(items) - len(rest)]
        again = data.draw(st.lists(st.sampled_from(seen), max_size=3, min_size=0 if new else 1)) if seen else []
        parts.append(again + rest[:new])
        rest = rest[new:]
    sent = data.draw(st.lists(cursors, unique=True, min_size=len(parts), max_size=len(parts)))
    script = [things(*part, cursor=cursor) for part, cursor in zip(parts, sent)]
    end = data.draw(st.sampled_from(["empty", "empty with a cursor", "no cursor", "repeated cursor"]))
    if end == "empty":
        script.append(things())
    elif end == "empty with a cursor":
        script += [things(cursor="more"), things()]
    elif end == "no cursor":
        script[-1] = things(*parts[-1])
    else:
        script.append(things(data.draw(st.sampled_from(items)), cursor=data.draw(st.sampled_from(sent))))

    service.script[:] = script
    service.requests.clear()
    found = read(scripted(service, api_retries=0).client)
    assert [item for a_page in found for item in a_page] == items
    queries = [dict(request.query) for request in service.requests]
    assert queries == [{}, *({"cursor": cursor} for cursor in [*sent, "more"])][: len(script)]


def test_requests_carry_limit_query_and_cursor(serve: Serve) -> None:
    served = serve(things("a", cursor="1"), things("b", cursor="2"), things("c"))
    read(served.client, page_size=7, query={"org_id": "o", "tag": ["x", "y"]})
    query = [("org_id", "o"), ("tag", "x"), ("tag", "y"), ("limit", "7")]
    cursors_sent = [[], [("cursor", "1")], [("cursor", "2")]]
    assert [request.query for request in served.requests] == [[*query, *cursor] for cursor in cursors_sent]


@pytest.mark.parametrize("empty, found", [(2, [["a"], [], [], ["b"]]), (3, [["a"], [], [], []])])
def test_an_empty_page_is_not_the_end_but_three_in_a_row_are(serve: Serve, empty: int, found: list[list[str]]) -> None:
    pauses = [things(cursor=f"{number}") for number in range(empty)]
    served = serve(things("a", cursor="first"), *pauses, *([things("b")] if empty < 3 else []))
    assert read(served.client) == found


def test_a_page_of_items_that_are_known_is_not_empty(serve: Serve) -> None:
    repeated = [things("a", "a", cursor=f"{number}") for number in range(5)]
    assert read(serve(*repeated, things("b")).client) == [["a"], [], [], [], [], ["b"]]


TOO_LARGE = reply({"message": "limit must be at most 100"}, 422)
INVALID = reply({"message": "unknown parameter"}, 400)
NO_ORGANIZATION = reply({"message": "org_id is required"}, 400)


def projects(*ids: str, cursor: str | None = None) -> Reply:
    return page("projects", [{"id": each} for each in ids], cursor)


def read_projects(client: Client, **options: Any) -> None:
    list(pages(client, "projects", field="projects", **options))


def limits(served: Scripted) -> list[str | None]:
    """The limit of each request."""
    return [dict(request.query).get("limit") for request in served.requests]


@pytest.mark.parametrize(
    "script, sent",
    [
        ([projects("a", cursor="1"), projects("b")], ["400", "400"]),
        ([TOO_LARGE, TOO_LARGE, projects("a", cursor="1"), projects("b")], ["400", "200", "100", "100"]),
        ([TOO_LARGE, TOO_LARGE, TOO_LARGE, projects("a")], ["400", "200", "100", None]),
        ([INVALID, projects("a", cursor="1"), projects("b")], ["400", None, None]),
    ],
)
def test_pages_are_as_large_as_the_service_takes(serve: Serve, script: list[Reply], sent: list[str | None]) -> None:
    served = serve(*script, projects("c"))
    read_projects(served.client)
    # Which is known in the next list.
    read_projects(served.client.with_secrets())
    assert limits(served) == [*sent, sent[-1]]


@pytest.mark.parametrize(
    "refusal, options, sent",
    [(TOO_LARGE, {"page_size": 7}, "7"), (TOO_LARGE, {"query": {"limit": 7}}, "7"), (NO_ORGANIZATION, {}, "400")],
    ids=["page_size", "query", "a missing organization"],
)
def test_no_other_limit_is_changed(serve: Serve, refusal: Reply, options: dict[str, Any], sent: str) -> None:
    served = serve(refusal)
    with pytest.raises(StatusError):
        read_projects(served.client, **options)
    assert limits(served) == [sent]


@pytest.mark.parametrize(
    "fields",
    [
        *(
            {"pagination": pagination}
            for pagination in (None, {"cursor": None}, {"cursor": ""}, {"next": "1"}, {"next": ""})
        ),
        *({}, {"has_more": False}, {"next": None}, {"nextCursor": ""}),
    ],
)
def test_a_page_without_a_new_cursor_ends_the_list(serve: Serve, fields: dict[str, Any]) -> None:
    served = serve(things("a", cursor="1"), reply({"things": [{"id": "b"}], **fields}))
    assert read(served.client) == [["a"], ["b"]]


def test_objects_without_an_id_are_unique_by_all_their_fields(serve: Serve) -> None:
    """Whatever the order of their fields, and an id that is neither a string nor a number is no id."""
    one, same, two, three = {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}, {"id": None, "a": 1}
    served = serve(page("things", [one, two], "1"), page("things", [same, three], "2"), page("things", [three, two]))
    found = [a_page.items for a_page in pages(served.client, "things", field="things")]
    assert found == [[one, two], [three], []]


@pytest.mark.parametrize(
    "broken, error",
    [
        (reply({"message": "oh"}, 500), StatusError),
        (reply({}, 404), NotFound),
        (reply(b"<html>"), UnexpectedResponse),
        (reply({"things": None}), UnexpectedResponse),
        (reply({"things": [{"name": "no id"}]}), UnexpectedResponse),
    ],
)
@pytest.mark.parametrize("valid_pages", [0, 2])
def test_a_failed_page_fails_the_list(serve: Serve, valid_pages: int, broken: Reply, error: type[ClouddbError]) -> None:
    valid = [things(f"item-{number}", cursor=f"{number}") for number in range(valid_pages)]
    with pytest.raises(error):
        read(serve(*valid, broken, api_retries=0).client)


@pytest.mark.parametrize("pagination", [{"next": "n+1"}, {"cursor": "", "next": "n+1"}])
def test_the_cursor_may_be_named_next(serve: Serve, pagination: dict[str, Any]) -> None:
    served = serve(reply({"things": [{"id": "a"}], "pagination": pagination}), things("b"))
    assert read(served.client) == [["a"], ["b"]]
    assert served.requests[1].query == [("cursor", "n+1")]


@pytest.mark.parametrize(
    "signs",
    [
        # https://github.com/openai/openai-node/pull/2561, https://github.com/openfga/go-sdk/pull/38
        {"has_more": True},
        {"pagination": {"hasMore": True}},
        {"next_page_token": "x"},
        {"pagination": {"cursor": None, "nextCursor": "x"}},
        {"next": "https://control.example.com/things?page=2"},
        # A cursor of another type.
        *({"pagination": pagination} for pagination in ({"cursor": 5}, {"cursor": {}}, "1")),
    ],
)
def test_a_list_that_goes_on_without_a_cursor_is_not_complete(serve: Serve, signs: dict[str, Any]) -> None:
    with pytest.raises(UnexpectedResponse):
        read(serve(reply({"things": [{"id": "a"}], **signs})).client)


# The shape of a response, as api.md describes it


def response(body: Any) -> Response:
    return Response(body, Request("GET", "/projects", "id-1"), 3)


JSON_TYPES: list[tuple[Any, str]] = [
    *((None, "null"), (True, "a boolean"), (1, "an integer"), (1.5, "a number"), ("text", "a string")),
    *(([], "an array"), ({}, "an object")),
]
CHECKS = {
    "a JSON object was expected": ("an object", lambda value: response(value).object()),
    "its field 'x' should be an object": ("an object", lambda value: response({"x": value}).object("x")),
    "the response should be an array": ("an array", lambda value: response(value).items(None)),
    "its field 'x' should be an array": ("an array", lambda value: response({"x": value}).items("x")),
    "an object was expected": ("an object", lambda value: response([{}, value]).items(None)),
    "the field 'n' should be an integer": ("an integer", lambda value: response([{"n": value}]).items(None, n=int)),
    "the field 's' should be a string": ("a string", lambda value: response(None).require({"s": value}, s=str)),
}


@pytest.mark.parametrize("value, named", JSON_TYPES)
@pytest.mark.parametrize("problem, check", CHECKS.items())
def test_other_types_are_refused(value: Any, named: str, problem: str, check: Any) -> None:
    accepted, call = check
    with nullcontext() if named == accepted else pytest.raises(UnexpectedResponse) as error:
        call(value)
    if error:
        assert f" is not what the API describes: {problem}, not {named}" in str(error.value)
        assert error.value.details == {"method": "GET", "path": "/projects", "attempts": 3, "request_id": "id-1"}


def test_missing_fields_are_refused() -> None:
    with pytest.raises(UnexpectedResponse):
        response({}).object("operation")
    with pytest.raises(UnexpectedResponse):
        response(None).require({"id": "o"}, id=str, status=str)


@pytest.mark.parametrize("field", ["id", "project_id", "branch_id", "endpoint_id"])
def test_every_id_is_checked(field: str) -> None:
    for accepted in ("br-1", 7, None, ""):
        assert response(None).require({field: accepted}) == {field: accepted}
    with pytest.raises(UnexpectedResponse):
        response(None).require({field: "{{ x }}"})


@pytest.mark.parametrize("value", [None, True, 7, {}, "a b\n", ".." * 50])
def test_values_that_are_no_ids(value: Any) -> None:
    with pytest.raises(UnexpectedResponse):
        response(None).require_id(value)
