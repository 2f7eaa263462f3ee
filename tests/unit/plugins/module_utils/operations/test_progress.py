# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines that a wait writes for the action plugin."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._operations import progress as progress_file
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_failure import WaitFailed
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.operations.simulated_service import (
    Service,
    finished_after,
    wait_for,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.progress import Progress


def test_each_status_change_is_a_line_that_counts_what_is_done(
    client: Client, service_of: Callable[..., Service], progress: Progress
) -> None:
    ends = {"p0-op0": 3, "p0-op1": 9, "p0-op2": 9}
    service = service_of(lambda name, elapsed: "skipped" if elapsed >= ends[name] else "running", operations=3)
    wait_for(client, service.refs).run()
    lines = progress()
    assert [line.split(" ")[3] for line in lines] == ["p0-op0", "p0-op1", "p0-op2"]
    assert [line.rpartition(" · ")[2] for line in lines] == ["1 of 3 done", "2 of 3 done", "3 of 3 done"]
    assert all(line.startswith("clouddb: project-0 ") and " running → skipped (" in line for line in lines)


def test_a_failed_wait_shows_its_last_changes(
    client: Client, service_of: Callable[..., Service], progress: Progress
) -> None:
    service = service_of(lambda name, elapsed: "failed" if elapsed >= 1 else "running")
    with pytest.raises(WaitFailed):
        wait_for(client, service.refs).run()
    [line] = progress()
    assert "running → failed" in line and line.endswith("0 of 1 done")


def test_a_minute_of_silence_is_followed_by_what_the_task_waits_for(
    client: Client, clock: FakeClock, service_of: Callable[..., Service], progress: Progress
) -> None:
    service = service_of(finished_after(100), operations=2)
    wait_for(client, service.refs, timeout=300.0).run()
    waiting, *_changes = progress()
    assert waiting.startswith("clouddb: waiting for 2 of 2 operations (6") and "including project-0 " in waiting
    assert waiting.endswith(" p0-op0 running")


@pytest.mark.parametrize("pipe", [None, "missing", "full", "unread"])
def test_a_wait_ends_as_always_if_nobody_reads(
    monkeypatch: pytest.MonkeyPatch, client: Client, service_of: Callable[..., Service], tmp_path: Path, pipe: str
) -> None:
    path = tmp_path / "pipe"
    monkeypatch.delenv(progress_file.VARIABLE, raising=False)
    if pipe:
        monkeypatch.setenv(progress_file.VARIABLE, str(path))
    if pipe in ("full", "unread"):
        os.mkfifo(path)
    reader = os.open(path, os.O_RDWR | os.O_NONBLOCK) if pipe == "full" else os.open(os.devnull, os.O_RDWR)
    while pipe == "full":
        try:
            os.write(reader, b"x" * 4096)
        except BlockingIOError:
            break
    assert wait_for(client, service_of(finished_after(10)).refs).run()["operations"][0]["status"] == "finished"
    os.close(reader)


def test_values_of_the_service_cannot_control_the_terminal(
    client: Client, service_of: Callable[..., Service], progress: Progress
) -> None:
    service = service_of(lambda name, elapsed: "finished" if elapsed >= 9 else "x\x1b[2J\ny")
    wait_for(client, service.refs).run()
    [line] = progress()
    assert line.isprintable()
