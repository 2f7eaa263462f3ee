# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A list in whatever pages a service sends it: every item once, each cursor as it came, and always an end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.pagination import pages
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import scripted
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, ScriptedService, reply

# Everything but lone surrogates, which are no text. These may not stand alone: an id becomes a segment of a path.
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
ids = texts.filter(lambda text: text.strip() and text not in (".", ".."))
cursors = texts | st.sampled_from(
    ["2026-11-21T08:00:00.123456789+02:00", "%2B", "a&cursor=b#c", " ", "0", "\r\n", "\0"]
)


def page(items: list[str], **pagination: Any) -> Reply:
    return reply({"things": [{"id": item} for item in items], **pagination})


def read(service: ScriptedService, *script: Reply) -> list[str]:
    """The ids that a list in these pages has."""
    service.script[:] = script
    service.requests.clear()
    client = scripted(service, api_retries=0).client
    return [item["id"] for a_page in pages(client, "things", field="things") for item in a_page.items]


@given(st.data())
def test_every_item_is_listed_once(service: ScriptedService, data: st.DataObject) -> None:
    items = data.draw(st.lists(ids, unique=True, min_size=1, max_size=12))
    parts: list[list[str]] = []
    rest = items
    while rest:
        # Each page has the next few items, or none, and some of the pages before it.
        new = data.draw(st.integers(0 if parts else 1, len(rest)))
        seen = items[: len(items) - len(rest)]
        again = data.draw(st.lists(st.sampled_from(seen), max_size=3, min_size=0 if new else 1)) if seen else []
        parts.append(again + rest[:new])
        rest = rest[new:]
    sent = data.draw(st.lists(cursors, unique=True, min_size=len(parts), max_size=len(parts)))
    whole = [page(part, pagination={"cursor": cursor}) for part, cursor in zip(parts, sent)]
    end = data.draw(st.sampled_from(["empty", "empty with a cursor", "no cursor", "cursor again"]))
    if end == "empty":
        whole.append(page([]))
    elif end == "empty with a cursor":
        whole.append(page([], pagination={"cursor": "more"}))
    elif end == "no cursor":
        whole[-1] = page(parts[-1])
    else:
        whole.append(page([data.draw(st.sampled_from(items))], pagination={"cursor": data.draw(st.sampled_from(sent))}))

    assert read(service, *whole) == items
    asked_for = [dict(request.query) for request in service.requests]
    assert asked_for == [{}, *({"cursor": cursor} for cursor in sent)][: len(whole)]


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abc"), max_size=3), st.sampled_from([None, "", "1", "2", "3"])),
        min_size=1,
        max_size=5,
    )
)
def test_pagination_always_ends(service: ScriptedService, script: list[tuple[list[str], str | None]]) -> None:
    """Few cursors are soon all seen, so that no list is longer than there are cursors."""
    found = read(service, *(page(items, pagination={"cursor": cursor}) for items, cursor in script * 4))
    served = script[: len(service.requests)]
    assert len(service.requests) <= 5
    assert found == list(dict.fromkeys(item for items, _cursor in served for item in items))


@given(texts, st.sampled_from(["\ud800", "\udfff"]))
def test_cursors_of_other_types_fail_clearly(service: ScriptedService, text: str, half: str) -> None:
    with pytest.raises(ClouddbError, match="not valid Unicode"):
        read(service, page(["a"], pagination={"cursor": text + half}))
