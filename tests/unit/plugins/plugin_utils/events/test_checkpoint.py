# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is saved, and when."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import FollowedProject
from ansible_collections.clouddb.control.plugins.plugin_utils._events.checkpoint import SAVE_INTERVAL, Checkpoint, State
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH, FakeClock

BASE_URL = "https://control.example.com/api/v2"
LATER = EPOCH + timedelta(days=1)
FIRST = State(EPOCH, {})
SELECTION = {"project_ids": ["p"], "actions": [], "statuses": ["failed"]}


def state_of(name: str) -> State:
    """The state of an account with this project."""
    return State(LATER, {name: FollowedProject({"id": name}, LATER)})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def checkpoint(tmp_path: Path, clock: FakeClock) -> Checkpoint:
    return Checkpoint(str(tmp_path / "state.json"), BASE_URL, SELECTION, clock.clock)


def test_state_is_loaded_as_it_was_saved(checkpoint: Checkpoint, tmp_path: Path) -> None:
    assert checkpoint.load(FIRST) is FIRST
    saved = {"id": "p", "name": "shop", "updated_at": "2026-11-21T08:00:00Z"}
    project = FollowedProject({**saved, "owner": {"name": "x"}}, None)
    project.remember({"id": "o", "status": "running", "created_at": "2026-11-21T08:00:00Z"})
    project.forgotten_until = EPOCH
    asyncio.run(checkpoint.save(State(LATER, {"p": project})))
    loaded = checkpoint.load(FIRST)
    assert (loaded.new_since, loaded.is_local_time) == (LATER, False)
    assert {name: vars(each) for name, each in loaded.projects.items()} == {"p": {**vars(project), "project": saved}}
    assert set(os.listdir(tmp_path)) == {"state.json", ".clouddb-state.json.lock"}
    checkpoint.close()
    assert os.listdir(tmp_path) == ["state.json"]
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600


PROJECT = FollowedProject({"id": "p"}, EPOCH).as_json()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        *(
            json.dumps(
                {"base_url": BASE_URL, "new_since": EPOCH.isoformat(), "is_local_time": False, "projects": {}, **wrong}
            )
            for wrong in (
                {"base_url": "https://x.example.com"},
                {"selection": {**SELECTION, "statuses": ["finished"]}},
                {"selection": {**SELECTION, "project_ids": []}},
                {"new_since": None},
                {"projects": []},
                {"projects": {"p": {**PROJECT, "forgotten_until": "soon"}}},
                {"projects": {"p": {**PROJECT, "operations": [["o", "running"]]}}},
            )
        ),
    ],
)
def test_file_that_is_refused_is_kept(checkpoint: Checkpoint, tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(
        InvalidOption,
        match="^state_file: .* (does not hold the state|is about another base_url|is about other project_ids, actions or statuses)",
    ):
        checkpoint.load(FIRST)
    assert (tmp_path / "state.json").read_text() == content


def test_a_state_of_version_2_0_0_is_read(checkpoint: Checkpoint, tmp_path: Path) -> None:
    operation = ["o", "running", "2026-11-21T08:00:00Z"]
    project = {"project": {"name": "shop"}, "new_since": None, "forgotten_until": None, "operations": [operation]}
    state = {"base_url": BASE_URL, "new_since": EPOCH.isoformat(), "is_local_time": False, "projects": {"p": project}}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert checkpoint.load(FIRST).projects["p"].unfinished() == ["o"]
    assert json.loads((tmp_path / "state.json").read_text())["selection"] == SELECTION


def test_a_state_file_is_of_one_source_at_a_time(checkpoint: Checkpoint, tmp_path: Path, clock: FakeClock) -> None:
    other = Checkpoint(str(tmp_path / "state.json"), BASE_URL, SELECTION, clock.clock)
    checkpoint.load(FIRST)
    with pytest.raises(InvalidOption, match="^state_file: .*/state.json is in use by another event source"):
        other.load(FIRST)
    checkpoint.close()
    other.load(FIRST)


def test_file_that_cannot_be_used_is_an_error_at_the_start(tmp_path: Path, clock: FakeClock) -> None:
    for path, problem in ((tmp_path / "missing" / "state.json", "can't be written"), (tmp_path, "can't be read")):
        with pytest.raises(InvalidOption, match=f"^state_file: {path} {problem}: "):
            Checkpoint(str(path), BASE_URL, SELECTION, clock.clock).load(FIRST)


def test_temporary_files_of_a_killed_process_are_removed(checkpoint: Checkpoint, tmp_path: Path) -> None:
    kept = {".clouddb-events.other.json.abcdefgh.tmp", ".clouddb-abcdefgh.tmp", ".state.json.12345678.tmp"}
    for name in (*kept, ".clouddb-events.state.json.abcdefgh.tmp"):
        (tmp_path / name).touch()
    checkpoint.load(FIRST)
    checkpoint.close()
    assert set(os.listdir(tmp_path)) == {*kept, "state.json"}


def test_without_a_file_nothing_is_saved(clock: FakeClock) -> None:
    checkpoint = Checkpoint(None, BASE_URL, SELECTION, clock.clock)
    assert checkpoint.load(FIRST) is FIRST
    checkpoint.mark_changed()
    clock.sleep(SAVE_INTERVAL)
    assert not checkpoint.is_due(is_idle=True)
    checkpoint.save_now(FIRST)


def test_error_of_the_file_system_is_retried_and_logged_once(
    checkpoint: Checkpoint, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    checkpoint.load(FIRST)
    for outage in (1, 2):
        checkpoint.mark_changed()
        with monkeypatch.context() as failing:
            failing.setattr(tempfile, "mkstemp", fail)
            for _attempt in range(3):
                assert checkpoint.is_due(is_idle=True)
                asyncio.run(checkpoint.save(state_of(f"outage-{outage}")))
                assert not checkpoint.is_due(is_idle=False)
                clock.sleep(SAVE_INTERVAL)
        asyncio.run(checkpoint.save(state_of(f"outage-{outage}")))
        assert not checkpoint.is_due(is_idle=True)
        assert list(checkpoint.load(FIRST).projects) == [f"outage-{outage}"]
    failed, again = caplog.messages[:2]
    assert failed.startswith("The state can't be saved to ") and ": No space left on device. " in failed
    assert again == "The state is saved again, after 3 s."
    assert caplog.messages[2:] == [failed, again]


def test_last_save_that_fails_is_logged(
    checkpoint: Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint.load(FIRST)
    checkpoint.save_now(FIRST)
    assert caplog.messages == []
    tmp_path.rename(tmp_path.with_name("moved"))
    checkpoint.save_now(FIRST)
    assert [(record.name, record.levelno) for record in caplog.records] == [
        ("clouddb.control.operations", logging.ERROR)
    ]


def test_cancelled_save_ends_before_the_next_one_begins(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync
    is_writing, may_write = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        is_writing.set()
        assert may_write.wait(60)
        fsync(descriptor)

    async def main() -> None:
        saving = asyncio.create_task(checkpoint.save(state_of("old")))
        await asyncio.to_thread(is_writing.wait, 60)
        saving.cancel()
        await asyncio.sleep(0)
        assert not saving.done()
        may_write.set()
        with pytest.raises(asyncio.CancelledError):
            await saving

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", slow)
        asyncio.run(main())
    assert list(checkpoint.load(FIRST).projects) == ["old"]


def test_large_state_is_saved_less_often(
    checkpoint: Checkpoint, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saving takes a twentieth of the time."""
    # That of the file, and that of its directory.
    monkeypatch.setattr(os, "fsync", lambda descriptor: clock.sleep(0.25))
    asyncio.run(checkpoint.save(FIRST))
    checkpoint.mark_changed()
    clock.sleep(9)
    assert not checkpoint.is_due(is_idle=True)
    clock.sleep(1)
    assert checkpoint.is_due(is_idle=True)
