# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what changes during a wait as lines for the action plugin, which shows them while the module runs. Keeps P10."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .._clock import Clock
from .._untrusted import displayable
from .status import SUCCEEDED
from .wait_state import WaitState

# Names the named pipe of the action plugin on this machine. Without it, nobody reads the lines.
VARIABLE = "_CLOUDDB_PROGRESS"
HEARTBEAT_SECONDS = 60.0


class Progress:
    """The progress of a task since it began."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._began = self._shown_at = clock.monotonic()

    def report(self, state: WaitState | None = None) -> None:
        """Write a line for each status change since the last report or, after a minute of silence, that the task still waits.

        C(state) is that of the wait; None if the task waits for no operation.
        """
        now = self._clock.monotonic()
        lines = progress_lines(state, now - self._began) if state else []
        if not lines and now - self._shown_at >= HEARTBEAT_SECONDS:
            lines = [heartbeat_line(state, now - self._began)]
        for line in lines:
            self._shown_at = now
            _write(line)


def _write(line: str) -> None:
    # The wait goes on even if nobody reads.
    with suppress(KeyError, OSError):
        pipe = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(pipe, f"{displayable(line)}\n".encode())
        finally:
            os.close(pipe)


def progress_lines(state: WaitState, elapsed: float) -> list[str]:
    """A line for each new status change of a wait, for example
    C(clouddb: proj-1 create_branch 3f2a running → finished (12 s) · 2 of 3 done).
    """
    changes = state.new_changes()
    total = len(state.operations)
    done = sum(each is not None and each["status"] in SUCCEEDED for each in state.operations.values())
    done -= sum(change["status"] in SUCCEEDED for change in changes)
    lines = []
    for change in changes:
        done += change["status"] in SUCCEEDED
        statuses = f"{change['previous_status']} → {change['status']}"
        lines.append(f"clouddb: {_name(change)} {statuses} ({elapsed:.0f} s) · {done} of {total} done")
    return lines


def heartbeat_line(state: WaitState | None, elapsed: float) -> str:
    """A line that says that the task waits, and names one of the operations that it waits for, if it waits for any."""
    pending = state.awaited() if state else []
    if not (state and pending):
        return f"clouddb: waiting for the service ({elapsed:.0f} s)"
    total = len(state.operations)
    noun = "operation" if total == 1 else "operations"
    first = {**pending[0]._asdict(), **(state.operations[pending[0]] or {"status": "not polled yet"})}
    return f"clouddb: waiting for {len(pending)} of {total} {noun} ({elapsed:.0f} s), including {_name(first)} {first['status']}"


def _name(operation: Mapping[str, Any]) -> str:
    return f"{operation['project_id']} {operation.get('action', 'operation')} {operation['id'][:8]}"
