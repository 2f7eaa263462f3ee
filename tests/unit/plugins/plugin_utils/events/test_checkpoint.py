# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is saved, and when."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import SeenOperations
from ansible_collections.clouddb.control.plugins.plugin_utils._events.checkpoint import (
    SAVE_INTERVAL,
    Checkpoint,
    State,
)
from ansible_collections.clouddb.control.plugins.plugin_utils._events.state_file import StateFile
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock

BASE_URL = "https://control.example.com/api/v2"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def checkpoint(tmp_path: Path, clock: FakeClock) -> Checkpoint:
    return Checkpoint(str(tmp_path / "state.json"), BASE_URL, clock.clock)


def test_state_is_loaded_as_it_was_saved(checkpoint: Checkpoint) -> None:
    assert checkpoint.load() == State(None, {})
    asyncio.run(checkpoint.save(State(EPOCH, {"p": SeenOperations(EPOCH)})))
    loaded = checkpoint.load()
    assert (loaded.listed_at, list(loaded.projects)) == (EPOCH, ["p"])
    assert vars(loaded.projects["p"]) == vars(SeenOperations(EPOCH))


def test_without_a_file_nothing_is_saved(clock: FakeClock) -> None:
    checkpoint = Checkpoint(None, BASE_URL, clock.clock)
    assert checkpoint.load() == State(None, {})
    checkpoint.mark_changed()
    clock.sleep(SAVE_INTERVAL)
    assert not checkpoint.is_due(is_idle=True)
    checkpoint.save_now(State(EPOCH, {}))


def test_changed_state_is_saved_when_idle_or_after_the_interval(checkpoint: Checkpoint, clock: FakeClock) -> None:
    clock.sleep(SAVE_INTERVAL)
    assert not checkpoint.is_due(is_idle=True)
    checkpoint.mark_changed()
    assert checkpoint.is_due(is_idle=False)
    asyncio.run(checkpoint.save(State(EPOCH, {})))
    assert not checkpoint.is_due(is_idle=True)
    checkpoint.mark_changed()
    assert (checkpoint.is_due(is_idle=True), checkpoint.is_due(is_idle=False)) == (True, False)
    clock.sleep(SAVE_INTERVAL)
    assert checkpoint.is_due(is_idle=False)


def test_cancelled_save_ends_before_the_next_one_begins(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = StateFile.write
    is_writing, may_write = threading.Event(), threading.Event()

    def slow(file: StateFile, content: dict[str, Any]) -> None:
        is_writing.set()
        assert may_write.wait(60)
        write(file, content)

    async def main() -> None:
        saving = asyncio.create_task(checkpoint.save(State(None, {"old": SeenOperations(EPOCH)})))
        await asyncio.to_thread(is_writing.wait, 60)
        saving.cancel()
        await asyncio.sleep(0)
        assert not saving.done()
        may_write.set()
        with pytest.raises(asyncio.CancelledError):
            await saving

    with monkeypatch.context() as patch:
        patch.setattr(StateFile, "write", slow)
        asyncio.run(main())
    assert list(checkpoint.load().projects) == ["old"]
