# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option fields."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._fields import Fields, checked_fields

ITEMS = [{"id": "a", "name": None, "tags": [{"id": 1}]}, {"id": "b", "size": 3}]


def test_without_names_items_are_complete() -> None:
    fields = Fields()
    assert fields.reduce(ITEMS) == ITEMS
    assert fields.warnings() == []


def test_only_the_named_fields_stay() -> None:
    assert Fields(["name", "size"]).reduce(ITEMS) == [{"name": None}, {"size": 3}]


def test_further_fields_stay_for_a_while() -> None:
    fields = Fields(["size"])
    assert fields.reduce(fields.reduce(ITEMS, "id")) == [{}, {"size": 3}]
    assert fields.reduce(ITEMS, "id") == [{"id": "a"}, {"id": "b", "size": 3}]
    assert ITEMS[0]["name"] is None


@pytest.mark.parametrize("missing, quoted", [(["naem"], "'naem'"), (["a b", "x\n"], r"'a b' or 'x\n'")])
def test_fields_that_no_item_has_are_a_warning(missing: list[str], quoted: str) -> None:
    fields = Fields(["id", *missing, "error"], optional=["error"])
    fields.reduce(ITEMS[:1])
    fields.reduce(ITEMS[1:])
    assert fields.warnings() == [f"fields: no item has {quoted}. The fields are id, name, size, tags."]


def test_without_items_there_is_no_warning() -> None:
    fields = Fields(["naem"])
    fields.reduce([])
    assert fields.warnings() == []


@pytest.mark.parametrize("value", [[], [""], ["id", " "]])
def test_no_fields_and_blank_fields_are_refused(value: Any) -> None:
    with pytest.raises(InvalidOption):
        checked_fields({"fields": value})


def test_unset_option_is_all_fields() -> None:
    assert checked_fields({"fields": None}).reduce(ITEMS) == ITEMS
