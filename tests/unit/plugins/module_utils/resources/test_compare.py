# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of what a task asks for with what is there."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._resources.compare import changed_fields, contains


@pytest.mark.parametrize(
    "actual, wanted",
    [
        ("a", "a"),
        (17, "17"),
        (17.0, 17),
        (1209600, "1209600.0"),
        (1000, "1e3"),
        (-0.5, "-0.5"),
        ("17", 17),
        # https://github.com/coralogix/terraform-provider-coralogix/pull/470
        ("2026-11-21T08:00:00.000", "2026-11-21T08:00:00Z"),
        # https://github.com/CrowdStrike/terraform-provider-crowdstrike/pull/395
        ("2026-11-21T08:00:00Z", "2026-11-21T09:00:00+01:00"),
        ("2026-11-21T08:00:00.000000Z", "2026-11-21T08:00:00Z"),
        (True, True),
        (True, "True"),
        ("False", False),
        ("true", True),
        (None, None),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": {"b": [1, 2], "c": 3}}, {"a": {"b": [1, 2]}}),
        ([{"a": 1, "b": 2}], [{"a": 1}]),
    ],
)
def test_what_is_wanted_is_there(actual: Any, wanted: Any) -> None:
    assert contains(actual, wanted)


@pytest.mark.parametrize(
    "actual, wanted",
    [
        ("a", "b"),
        (10000000.0, 10000001.0),
        # https://github.com/mpyw/suve/pull/342
        (9007199254740993, 9007199254740992),
        (9007199254740993, 9007199254740992.0),
        ("17", "17.0"),
        # Python's numbers, but not JSON's.
        *((1000, text) for text in ("1_000", "01000", "+1000", " 1000", "1000.", "१०००")),
        # Text that is there is text.
        ("1.10", 1.1),
        ("1.1", 1.1),
        ("017", 17),
        ("1", True),
        ("2026-11-21T08:00:00Z", "2026-11-21T08:00:01Z"),
        ("2026-11-21", "20261121"),
        (17, "17x"),
        (1, True),
        (None, "None"),
        ("None", None),
        (None, ""),
        ("", None),
        ({"a": 1}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": 1}),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        ([1], 1),
        (1, [1]),
    ],
)
def test_what_is_wanted_is_not_there(actual: Any, wanted: Any) -> None:
    assert not contains(actual, wanted)


def test_a_diff_has_only_the_fields_that_changed() -> None:
    before = {"name": "a", "size": 1, "settings": {"quota": 1, "rate": 2}, "gone": 1}
    after = {"name": "a", "size": 2, "settings": {"quota": 1, "rate": 3}, "new": None}
    assert changed_fields(before, after) == {
        "before": {"size": 1, "settings": {"rate": 2}, "gone": 1},
        "after": {"size": 2, "settings": {"rate": 3}, "new": None},
    }
