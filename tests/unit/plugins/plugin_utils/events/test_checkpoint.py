# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is saved, and when."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import tempfile
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import SeenOperations
from ansible_collections.clouddb.control.plugins.plugin_utils._events.checkpoint import (
    SAVE_INTERVAL,
    Checkpoint,
    State,
)
from ansible_collections.clouddb.control.plugins.plugin_utils._events.state_file import StateFile
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock

BASE_URL = "https://control.example.com/api/v2"
LATER = EPOCH + timedelta(days=1)
FIRST = State([], {})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def checkpoint(tmp_path: Path, clock: FakeClock) -> Checkpoint:
    return Checkpoint(str(tmp_path / "state.json"), BASE_URL, clock.clock)


def test_state_is_loaded_as_it_was_saved(checkpoint: Checkpoint) -> None:
    assert checkpoint.load() == FIRST
    state = State([EPOCH, LATER], {"p": SeenOperations(EPOCH)}, {}, {"q": SeenOperations(LATER)})
    asyncio.run(checkpoint.save(state))
    loaded = checkpoint.load()
    assert loaded.lists_began_at == [EPOCH, LATER]
    assert {name: vars(seen) for name, seen in loaded.projects.items()} == {"p": vars(SeenOperations(EPOCH))}
    assert {name: vars(seen) for name, seen in loaded.deleted.items()} == {"q": vars(SeenOperations(LATER))}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"projects": []}, "does not hold the state"),
        ({"lists_began_at": None}, "does not hold the state"),
        ({"lists_began_at": ["0001-01-01T00:00:00Z"]}, "does not hold the state"),
        ({"projects": {"..": SeenOperations(EPOCH).as_json()}}, "does not hold the state"),
        (
            {"projects": {"p": {**SeenOperations(EPOCH).as_json(), "forgotten_until": "soon"}}},
            "does not hold the state",
        ),
        ({"base_url": "https://x.example.com"}, "is about another base_url"),
    ],
)
def test_file_that_is_refused_is_kept(
    checkpoint: Checkpoint, tmp_path: Path, content: dict[str, Any], reason: str
) -> None:
    file = tmp_path / "state.json"
    text = json.dumps(
        {"base_url": BASE_URL, "lists_began_at": [], "projects": {}, "listed": {}, "deleted": {}, **content}
    )
    file.write_text(text)
    with pytest.raises(InvalidOption, match=f"^state_file: .* {reason}"):
        checkpoint.load()
    assert file.read_text() == text


def test_file_that_cannot_be_written(tmp_path: Path, clock: FakeClock) -> None:
    file = tmp_path / "missing" / "state.json"
    with pytest.raises(InvalidOption) as error:
        Checkpoint(str(file), BASE_URL, clock.clock).load()
    problem = "can't be written: No such file or directory. Check its folder, or name another file."
    assert str(error.value) == f"state_file: {file} {problem}"


def test_name_and_hints_of_a_listed_project_are_saved(checkpoint: Checkpoint) -> None:
    saved = {"name": "shop", "updated_at": "2026-11-21T08:00:00Z"}
    listed = {"p": {**saved, "id": "p", "owner": {"name": "x"}}}
    asyncio.run(checkpoint.save(State([EPOCH], {"p": SeenOperations(EPOCH)}, listed)))
    assert checkpoint.load().listed == {"p": saved}


def test_without_a_file_nothing_is_saved(clock: FakeClock) -> None:
    checkpoint = Checkpoint(None, BASE_URL, clock.clock)
    assert checkpoint.load() == FIRST
    checkpoint.mark_changed()
    clock.sleep(SAVE_INTERVAL)
    assert not checkpoint.is_due(is_idle=True)
    checkpoint.save_now(State([EPOCH], {}))


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ENOSPC, errno.EIO, errno.EROFS], ids=os.strerror)
def test_error_of_the_file_system_is_retried_and_logged_once(
    checkpoint: Checkpoint,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    number: int,
) -> None:
    def fail(*args: object) -> None:
        raise OSError(number, os.strerror(number))

    checkpoint.load()
    for outage in (1, 2):
        checkpoint.mark_changed()
        with monkeypatch.context() as failing:
            failing.setattr(tempfile, "mkstemp", fail)
            for _attempt in range(3):
                assert checkpoint.is_due(is_idle=True)
                asyncio.run(checkpoint.save(State([EPOCH], {f"outage-{outage}": SeenOperations(EPOCH)})))
                assert not checkpoint.is_due(is_idle=False)
                clock.sleep(SAVE_INTERVAL)
        asyncio.run(checkpoint.save(State([EPOCH], {f"outage-{outage}": SeenOperations(EPOCH)})))
        assert not checkpoint.is_due(is_idle=True)
        assert list(checkpoint.load().projects) == [f"outage-{outage}"]
    failed = (
        f"The state can't be saved to {tmp_path}/state.json: {os.strerror(number)}. This is retried. If the event source "
        "ends before it succeeds, a restart emits the events since then again, with the same meta.uuid."
    )
    assert caplog.messages == [failed, "The state is saved again, after 3 s."] * 2


def test_last_save_that_fails_is_logged(
    checkpoint: Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint.load()
    checkpoint.save_now(State([EPOCH], {}))
    assert caplog.messages == []
    (tmp_path / "state.json").unlink()
    tmp_path.rename(tmp_path.with_name("moved"))
    checkpoint.save_now(State([EPOCH], {}))
    message = (
        f"The state can't be saved to {tmp_path}/state.json: No such file or directory. After a restart, the events since it was "
        "last saved are emitted again, with the same meta.uuid."
    )
    assert caplog.record_tuples == [("clouddb.control.operations", logging.ERROR, message)]


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
        saving = asyncio.create_task(checkpoint.save(State([EPOCH], {"old": SeenOperations(EPOCH)})))
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


def test_large_state_is_saved_less_often(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving takes a twentieth of the time."""
    checkpoint = Checkpoint(str(tmp_path / "state.json"), BASE_URL, clock.clock)
    monkeypatch.setattr(StateFile, "write", lambda self, content: clock.sleep(0.5))
    asyncio.run(checkpoint.save(State([EPOCH], {})))
    checkpoint.mark_changed()
    clock.sleep(9)
    assert not checkpoint.is_due(is_idle=True)
    clock.sleep(1)
    assert checkpoint.is_due(is_idle=True)
    assert checkpoint.is_due(is_idle=False)
