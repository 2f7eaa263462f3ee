# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deadlines hold in networks where packets are dropped, names are not found and responses never end.

Linux lets tests build such networks in namespaces.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.clouddb.control.tests.unit.plugins.faults import hostile_network

# What the collection promises: the deadline, and no more than this.
SECONDS_AFTER_DEADLINE = 2.0


@pytest.mark.skipif(not hostile_network.are_namespaces_permitted(), reason="only where namespaces are permitted")
@pytest.mark.parametrize("task", ["project_info", pytest.param("operation_wait", marks=pytest.mark.soak)])
def test_a_process_ends_by_its_deadline(task: str, tmp_path: Path) -> None:
    limit = hostile_network.TASKS[task].seconds + SECONDS_AFTER_DEADLINE
    processes = hostile_network.run(task, tmp_path)
    for process in processes:
        print(f"{process.seconds:5.2f} s  {process.case}: {process.message}")
    assert len(processes) > 10
    assert [process for process in processes if process.seconds > limit] == []
    assert [process for process in processes if not process.message] == []
