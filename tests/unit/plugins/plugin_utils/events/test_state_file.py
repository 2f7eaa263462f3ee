# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A state is replaced as a whole, or the one before it stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.plugin_utils._events.state_file import StateFile


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = StateFile(str(tmp_path / "state.json"))
    assert file.read() is None
    for state in ({"long": "x" * 1000}, {"short": None}):
        file.write(state)
        assert StateFile(file.path).read() == state
    assert os.listdir(tmp_path) == ["state.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_state_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    file = StateFile(str(tmp_path / "state.json"))
    file.write({"old": 1})
    with monkeypatch.context() as full:
        full.setattr(os, step, fail)
        with pytest.raises(InvalidOption, match="^state_file: .*state.json can't be written: No space left on device"):
            file.write({"new": 2})
    assert file.read() == {"old": 1}
    file.write({"new": 2})
    assert file.read() == {"new": 2}


def test_a_folder_is_no_state(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="^state_file: .* can't be read: Is a directory"):
        StateFile(str(tmp_path)).read()


@pytest.mark.parametrize("content", ["", "[]", "null", "{"])
def test_something_else_is_no_state(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    with pytest.raises(InvalidOption) as error:
        StateFile(str(path)).read()
    assert (
        str(error.value)
        == f"state_file: {path} holds something else than a state; name another file, or remove it to begin anew"
    )
