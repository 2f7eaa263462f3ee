# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Usage and quotas by the names of the published API document, and those of its list of projects."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.plugin_utils._report.usage import (
    checked_limits,
    over_limits,
    usage_facts,
)

USAGE = {
    "active_time_seconds": 1,
    "compute_time_seconds": 2,
    "written_data_bytes": 3,
    "data_transfer_bytes": 4,
    "synthetic_storage_size": 5,
}


def test_each_usage_with_its_quota() -> None:
    assert usage_facts({**USAGE, "settings": {"quota": USAGE}}) == {"usage": USAGE, "quota": USAGE}
    listed = usage_facts({"active_time": 1, "cpu_used_sec": 2, "settings": {"quota": {"written_data_bytes": 0}}})
    assert listed == {"usage": {"active_time_seconds": 1, "compute_time_seconds": 2}, "quota": {}}
    assert usage_facts({"settings": []}) == usage_facts({"settings": {"quota": []}}) == {"usage": {}, "quota": {}}


@pytest.mark.parametrize(
    "limits", [{"cpu": 1}, *({"written_data_bytes": value} for value in (True, "5", -1, float("nan")))]
)
def test_a_limit_is_a_number_of_a_field(limits: dict[str, object]) -> None:
    with pytest.raises(InvalidOption) as error:
        checked_limits(limits)
    assert error.value.details == {"option": "limits"}
    assert checked_limits({"written_data_bytes": 0}) == {"written_data_bytes": 0}


def test_only_what_is_over_its_limit() -> None:
    project = {"id": "p", "name": "shop", "usage": {"written_data_bytes": 3}}
    assert over_limits([project], {"written_data_bytes": 3}) == over_limits([], {"written_data_bytes": 3}) == []
    assert over_limits([project], {"written_data_bytes": 0}) == [
        {"id": "p", "name": "shop", "field": "written_data_bytes", "used": 3, "limit": 0}
    ]
    with pytest.raises(InvalidOption):
        over_limits([project], {"data_transfer_bytes": 1})
