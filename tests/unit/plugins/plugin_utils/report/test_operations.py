# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The precision of the durations of operations."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._report.operations import operation_facts
from ansible_collections.clouddb.control.tests.unit.plugins.filter.accounts import NOW, operation


@pytest.mark.parametrize("seconds, median", [((0.1, 0.2), 0.15), ((0.000002, 0.000005), 0.000004)])
def test_medians_are_rounded_to_microseconds(seconds: tuple[float, float], median: float) -> None:
    operations = [operation(1, seconds=each, age=NOW - NOW) for each in seconds]
    [action] = operation_facts(operations, {}, NOW, NOW)["by_action"]
    assert action["median_seconds"] == median
