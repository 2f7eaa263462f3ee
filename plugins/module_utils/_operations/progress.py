# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what changes during a wait as lines for the action plugin, which shows them while the module runs. Keeps P10."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Optional

from .._clock import Clock
from .._untrusted import displayable
from .operations import Operation, OperationRef
from .status import SUCCEEDED

# Names the named pipe of the action plugin on this machine. Without it, nobody reads the lines.
VARIABLE = "_CLOUDDB_PROGRESS"
HEARTBEAT_SECONDS = 60.0
# The operations of a wait; None until it has been polled.
Operations = Mapping[OperationRef, Optional[Operation]]


class Progress:
    """The progress of a task since it began."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._began = self._shown_at = clock.monotonic()

    def report(
        self,
        operations: Operations | None = None,
        changes: Sequence[Mapping[str, Any]] = (),
        awaited: Sequence[OperationRef] = (),
    ) -> None:
        """Write a line for each status change or, after a minute of silence, that the task still waits.

        C(operations) are those of the wait, C(awaited) those that it still waits for; none if the task waits for no operation.
        """
        now = self._clock.monotonic()
        lines = progress_lines(operations or {}, changes, now - self._began)
        if not lines and now - self._shown_at >= HEARTBEAT_SECONDS:
            lines = [heartbeat_line(operations or {}, awaited, now - self._began)]
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


def progress_lines(operations: Operations, changes: Sequence[Mapping[str, Any]], elapsed: float) -> list[str]:
    """A line for each new status change of a wait, for example
    C(clouddb: proj-1 create_branch 3f2a running → finished (12 s) · 2 of 3 done).
    """
    done = sum(each is not None and each["status"] in SUCCEEDED for each in operations.values())
    done -= sum(change["status"] in SUCCEEDED for change in changes)
    lines = []
    for change in changes:
        done += change["status"] in SUCCEEDED
        statuses = f"{change['previous_status']} → {change['status']}"
        lines.append(f"clouddb: {_name(change)} {statuses} ({elapsed:.0f} s) · {done} of {len(operations)} done")
    return lines


def heartbeat_line(operations: Operations, awaited: Sequence[OperationRef], elapsed: float) -> str:
    """A line that says that the task waits, and names one of the operations that it waits for, if it waits for any."""
    if not awaited:
        return f"clouddb: waiting for the service ({elapsed:.0f} s)"
    total = len(operations)
    noun = "operation" if total == 1 else "operations"
    first = {**awaited[0]._asdict(), **(operations[awaited[0]] or {"status": "not polled yet"})}
    return f"clouddb: waiting for {len(awaited)} of {total} {noun} ({elapsed:.0f} s), including {_name(first)} {first['status']}"


def _name(operation: Mapping[str, Any]) -> str:
    return f"{operation['project_id']} {operation.get('action', 'operation')} {operation['id'][:8]}"
