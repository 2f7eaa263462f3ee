# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists in pages of any size: every item is returned once, cursors are sent back unchanged, and paging always ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._http.pages import pages
from ansible_collections.clouddb.control.tests.unit.support.environment import clear_environment
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import scripted
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    Reply,
    ScriptedService,
    reply,
    scripted_service,
)

# Any valid Unicode text. Ids are path segments, so they are not blank and not dots only.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
ids = st.from_regex(r"[A-Za-z0-9_.-]{1,128}", fullmatch=True).filter(lambda text: text.strip("."))
cursors = texts | st.sampled_from(
    ["2026-11-21T08:00:00.123456789+02:00", "%2B", "a&cursor=b#c", " ", "0", "\r\n", "\0"]
)


@pytest.fixture(scope="module")
def service() -> Iterator[ScriptedService]:
    """A scripted service for all examples."""
    with pytest.MonkeyPatch.context() as monkeypatch, scripted_service() as running:
        clear_environment(monkeypatch)
        yield running
        running.script.clear()


def page(items: list[str], **pagination: Any) -> Reply:
    return reply({"things": [{"id": item} for item in items], **pagination})


def read(service: ScriptedService, *script: Reply) -> list[str]:
    """The ids in a list of these pages."""
    service.script[:] = script
    service.requests.clear()
    client = scripted(service, api_retries=0).client
    return [item["id"] for a_page in pages(client, "things", field="things", id=str) for item in a_page.items]


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
    script = [page(part, pagination={"cursor": cursor}) for part, cursor in zip(parts, sent)]
    end = data.draw(st.sampled_from(["empty", "empty with a cursor", "no cursor", "repeated cursor"]))
    if end == "empty":
        script.append(page([]))
    elif end == "empty with a cursor":
        script.append(page([], pagination={"cursor": "more"}))
    elif end == "no cursor":
        script[-1] = page(parts[-1])
    else:
        script.append(
            page([data.draw(st.sampled_from(items))], pagination={"cursor": data.draw(st.sampled_from(sent))})
        )

    assert read(service, *script) == items
    queries = [dict(request.query) for request in service.requests]
    assert queries == [{}, *({"cursor": cursor} for cursor in sent)][: len(script)]
