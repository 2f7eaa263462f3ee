# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state file is replaced completely, or keeps its content."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.plugin_utils._events.state_file import StateFile
from ansible_collections.clouddb.control.tests.unit.support.special_files import special_files


def test_read_returns_what_was_written(tmp_path: Path) -> None:
    file = StateFile(str(tmp_path / "state.json"))
    assert file.read() is None
    for state in ({"long": "x" * 1000}, {"short": None}):
        file.write(state)
        assert StateFile(file.path).read() == state
    assert os.listdir(tmp_path) == ["state.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_keeps_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    file = StateFile(str(tmp_path / "state.json"))
    file.write({"old": 1})
    with monkeypatch.context() as full:
        full.setattr(os, step, fail)
        with pytest.raises(OSError, match="No space left on device"):
            file.write({"new": 2})
    assert file.read() == {"old": 1}
    file.write({"new": 2})
    assert file.read() == {"new": 2}


@special_files
def test_only_a_regular_file_is_read(tmp_path: Path, create: Callable[[Path], object], description: str) -> None:
    create(tmp_path / "state.json")
    with pytest.raises(
        InvalidOption, match=rf"^state_file: .* can't be read: {description}.* Set state_file to the path"
    ):
        StateFile(str(tmp_path / "state.json")).read()


@pytest.mark.parametrize("content", ["", "[]", "null", "{", "[" * 100_000])
def test_other_content_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    with pytest.raises(InvalidOption) as error:
        StateFile(str(path)).read()
    assert (
        str(error.value)
        == f"state_file: {path} does not hold a JSON object. Name another file, or remove this one to start anew."
    )


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    kept = {".clouddb-events.other.json.abcdefgh.tmp", ".clouddb-abcdefgh.tmp", ".state.json.12345678.tmp"}
    for name in (*kept, ".clouddb-events.state.json.abcdefgh.tmp"):
        (tmp_path / name).touch()
    assert StateFile(str(tmp_path / "state.json")).read() is None
    assert set(os.listdir(tmp_path)) == kept
