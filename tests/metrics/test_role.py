# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that the role account_report writes, for an account in a sandbox."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from conftest import Promtool, Role

HOUR = timedelta(hours=1)
SUCCESS = re.compile(
    r"^clouddb_account_report_last_success_timestamp_seconds\{account=\"production\"\} (\S+)$", re.MULTILINE
)


def time_of_success(text: str) -> float:
    [value] = SUCCESS.findall(text)
    return float(value)


@pytest.mark.smoke
def test_file(role: Role, promtool: Promtool) -> None:
    first = role.run("--diff")
    assert promtool("check", "metrics", text=first.text) == ""
    assert first.mode == 0o644
    assert time_of_success(first.text) == role.now.timestamp()
    lines = first.text.splitlines()
    assert 'clouddb_projects{account="production",region_id="azure-westeurope"} 1.0' in lines
    assert 'clouddb_operations{account="production",action="start_compute",status="failed"} 2.0' in lines
    assert list(role.metrics.parent.iterdir()) == [role.metrics]
    assert "+clouddb_" not in first.output

    again = role.run(later=HOUR)
    assert time_of_success(again.text) == role.now.timestamp() + 3600
    assert SUCCESS.sub("", again.text) == SUCCESS.sub("", first.text)
    # The page and its JSON are unchanged, the metrics are not.
    assert re.search(r"changed=1 .*failed=0", again.output)


def test_failed_run_keeps_the_time_of_the_last_success(role: Role) -> None:
    first = role.run()
    directory = str(role.metrics.parent)
    for failing in ({"account_report_dest": "/nowhere/a.html"}, {"account_report_json_dest": directory}):
        assert role.run(succeeds=False, later=HOUR, **failing).text == first.text
