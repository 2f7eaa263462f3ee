# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of what a task asks for with what is there."""

from __future__ import annotations

from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._api_request.compare import contains, fields_of
from ansible_collections.clouddb.control.tests.unit.support.in_one_test import in_one_test


@in_one_test(
    "actual, wanted",
    [
        ("a", "a"),
        (17, 17),
        (17, "17"),
        ("17", 17),
        (17.0, 17),
        (True, True),
        (True, "True"),
        (False, "False"),
        ("False", False),
        ("true", True),
        (None, None),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": {"b": [1, 2], "c": 3}}, {"a": {"b": [1, 2]}}),
        ([{"a": 1, "b": 2}], [{"a": 1}]),
        ({}, {}),
        ([], []),
    ],
)
def test_what_is_wanted_is_there(actual: Any, wanted: Any) -> None:
    assert contains(actual, wanted)


@in_one_test(
    "actual, wanted",
    [
        ("a", "b"),
        ("A", "a"),
        (17, 18),
        (17, "17x"),
        (1, True),
        (0, False),
        (None, "None"),
        ("None", None),
        (None, ""),
        ("", None),
        (None, {}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": 1}),
        ([1, 2], [1]),
        ([1], [1, 2]),
        ([1, 2], [2, 1]),
        ([1], 1),
        (1, [1]),
        ({}, []),
    ],
)
def test_what_is_wanted_is_not_there(actual: Any, wanted: Any) -> None:
    assert not contains(actual, wanted)


@in_one_test(
    "body, found, fields",
    [
        ({"branch": {"name": "x"}}, {}, {"name": "x"}),
        ({"branch": {"name": "x"}, "endpoints": []}, {}, {"name": "x", "endpoints": []}),
        ({"name": "x"}, {}, {"name": "x"}),
        ({"settings": {"quota": 1}}, {"settings": {"quota": 2}}, {"settings": {"quota": 1}}),
        ({"project": {"settings": {"quota": 1}}}, {"settings": {}}, {"settings": {"quota": 1}}),
        (None, {"name": "x"}, {}),
    ],
)
def test_the_fields_of_a_body(body: Any, found: dict[str, Any], fields: dict[str, Any]) -> None:
    assert fields_of(body, found) == fields
