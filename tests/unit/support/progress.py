# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the lines that a task writes about its progress, as the action plugin does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._operations.progress import VARIABLE

# Returns the lines so far.
Progress = Callable[[], list[str]]


@contextmanager
def progress_pipe(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Progress]:
    """Yield the function that reads what tasks have written to the pipe."""
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    monkeypatch.setenv(VARIABLE, str(path))

    def lines() -> list[str]:
        with suppress(BlockingIOError):
            return os.read(pipe, 65536).decode().splitlines()
        return []

    try:
        yield lines
    finally:
        os.close(pipe)
