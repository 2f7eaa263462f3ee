# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the progress of a wait on the controller, while the module still runs where the task runs.

The module runs several times. Each run returns after a status change or a minute of silence; its result has the status
changes, and the state from which the next run resumes the wait.

Keeps P10.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
import time
from typing import Any

from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..module_utils._operations.status import SUCCEEDED
from ..module_utils._untrusted import displayable

# No polls are sent while the module starts, so its runs become longer, and starts rarer, as the wait goes on.
FIRST_RUN_SECONDS = 2.0
RUN_GROWTH = 1.5
MAX_RUN_SECONDS = 20.0
HEARTBEAT_SECONDS = 60.0
RECONNECT_INTERVAL = 5.0


STDERR: int | None = None
# Ansible loads this module before it forks the worker of the task. Since core 2.19, the standard error of workers is /dev/null.
with contextlib.suppress(AttributeError, OSError):
    STDERR = os.dup(sys.stderr.fileno())


class ProgressAction(ActionBase):
    """Runs the module of the same name, several times if the progress is to be shown."""

    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        shows_progress = self._shows_progress(task_vars or {})
        # The target does not log the task: the body of a request may hold secrets, and each run would be a line.
        task_vars = {**(task_vars or {}), "ansible_no_target_syslog": True}
        if self._task.async_val or self._task.check_mode or not shows_progress:
            return {**result, **self._execute_module(task_vars=task_vars, wrap_async=self._task.async_val)}
        return {**result, **self._run_with_progress(task_vars)}

    def _shows_progress(self, task_vars: dict[str, Any]) -> bool:
        if self._task.no_log or "json" in constants.DEFAULT_STDOUT_CALLBACK:
            return False
        progress = self._task.args.get("progress")
        if progress is None:
            progress = self._templar.template(task_vars.get("clouddb_progress", True))
        return bool(boolean(progress, strict=False))

    def _run_with_progress(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        """Run the module until it returns no state to resume from; the results of its runs together, the last ones first."""
        self._shown_at = time.monotonic()
        state: dict[str, Any] | None = None
        min_seconds = FIRST_RUN_SECONDS
        earlier: dict[str, Any] = {}
        while True:
            result = merged(earlier, self._run_module(state, min_seconds, task_vars))
            state, changes = result.pop("_state", None), result.pop("_changes", [])
            # The wait goes on even if its progress cannot be shown.
            with contextlib.suppress(Exception):
                self._show(result, changes, is_over=state is None)
            if state is None:
                return result
            earlier = result
            min_seconds = min(min_seconds * RUN_GROWTH, MAX_RUN_SECONDS)

    def _run_module(
        self, state: dict[str, Any] | None, min_seconds: float, task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        """The result of one run. If it is lost with the connection or the module's process, a wait with a state goes on until its deadline."""
        arguments = {**self._task.args, "_stop_when": {"min_seconds": min_seconds, "max_seconds": HEARTBEAT_SECONDS}}
        retry_until = time.monotonic()
        if state is not None:
            arguments["_state"] = state
            # A run that may send a request must not do so twice.
            retry_until += state["remaining"] if state.get("is_sent", True) else 0
        while True:
            try:
                result = dict(self._execute_module(module_args=arguments, task_vars=task_vars))
                # Ansible returns the output of a module only if there is no result in it.
                if "module_stdout" not in result or time.monotonic() >= retry_until:
                    return result
            except AnsibleConnectionFailure:
                if time.monotonic() >= retry_until:
                    raise
            time.sleep(RECONNECT_INTERVAL)

    def _show(self, result: dict[str, Any], changes: list[dict[str, Any]], is_over: bool) -> None:
        """Show a line for each change, or that the wait goes on if nothing was shown for a while."""
        lines = progress_lines(result.get("operations", []), changes)
        if not lines and not is_over and time.monotonic() - self._shown_at >= HEARTBEAT_SECONDS:
            lines = [heartbeat_line(result["operations"], result["elapsed"])]
        for line in lines:
            show(displayable(line))
            self._shown_at = time.monotonic()


def show(line: str) -> None:
    """Write the line to Ansible's log, and to standard error unless its reader has stopped reading.

    Ansible's own Display would hand it to the thread that receives the results of tasks, which ends if the output is closed.
    """
    logging.getLogger("ansible").info(line)
    if STDERR is not None and select.select([], [STDERR], [], 0)[1]:
        os.write(STDERR, f"{line}\n".encode())


def merged(earlier: dict[str, Any], latest: dict[str, Any]) -> dict[str, Any]:
    """The results of two runs: the latest values, but all warnings."""
    result = {**earlier, **latest}
    if shown := earlier.get("warnings"):
        result["warnings"] = [*shown, *(warning for warning in latest.get("warnings", []) if warning not in shown)]
    return result


def progress_lines(operations: list[dict[str, Any]], changes: list[dict[str, Any]]) -> list[str]:
    """A line for each status change, for example
    C(clouddb: proj-1 create_branch 3f2a running → finished (12 s) · 2 of 3 done).
    """
    done = sum(operation["status"] in SUCCEEDED for operation in operations) - sum(
        change["status"] in SUCCEEDED for change in changes
    )
    lines = []
    for change in changes:
        done += change["status"] in SUCCEEDED
        lines.append(
            f"clouddb: {_name(change)} {change['previous_status']} → {change['status']} ({change['elapsed']:.0f} s) · {done} of {len(operations)} done"
        )
    return lines


def heartbeat_line(operations: list[dict[str, Any]], elapsed: float) -> str:
    """A line that says that the wait goes on, and names one of the operations that it waits for, if it waits for any."""
    pending = [operation for operation in operations if operation["status"] not in SUCCEEDED]
    if not pending:
        return f"clouddb: waiting for the service ({elapsed:.0f} s)"
    noun = "operation" if len(operations) == 1 else "operations"
    status = pending[0]["status"] or "not polled yet"
    return f"clouddb: waiting for {len(pending)} of {len(operations)} {noun} ({elapsed:.0f} s), including {_name(pending[0])} {status}"


def _name(operation: dict[str, Any]) -> str:
    return f"{operation['project_id']} {operation.get('action', 'operation')} {operation['id'][:8]}"
