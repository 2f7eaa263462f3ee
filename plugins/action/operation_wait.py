# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows on the controller how the module operation_wait gets on, which still runs where the task runs.

The module is run for one part of the wait after the other. Each leaves to the next what it knows, so the wait's deadline,
its pauses and its result are those of a single run; and each ends by itself when there is something to tell.
"""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils._operations.status import SUCCEEDED

# Starting the module costs a moment in which it does not look, so the parts grow longer as the wait does.
FIRST_PART = 2.0
GROWTH = 1.5
MAX_PART = 20.0
HEARTBEAT = 60.0

DEFAULT_TIMEOUT = 300.0
RECONNECTION_PAUSE = 5.0

display = Display()


class ActionModule(ActionBase):
    """Runs the module, in parts where somebody is to be told how it goes."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.async_val or self._task.check_mode or not self._is_wanted(task_vars or {}):
            return {**result, **self._execute_module(task_vars=task_vars, wrap_async=self._task.async_val)}
        return {**result, **self._wait(task_vars)}

    def _is_wanted(self, task_vars: dict[str, Any]) -> bool:
        if self._task.no_log:
            return False
        wanted = self._task.args.get("progress")
        if wanted is None:
            wanted = self._templar.template(task_vars.get("clouddb_progress", True))
        return bool(boolean(wanted, strict=False))

    def _wait(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        self._told = started = time.monotonic()
        at_least = FIRST_PART
        left: dict[str, Any] | None = None
        while True:
            part = {"at_least": at_least, "at_most": HEARTBEAT, "elapsed": time.monotonic() - started, "left": left}
            # One task is one line in the target's syslog, without what its parts hand on.
            variables = task_vars if left is None else {**(task_vars or {}), "ansible_no_target_syslog": True}
            try:
                result: dict[str, Any] = self._execute_module(
                    module_args={**self._task.args, "_part": part}, task_vars=variables
                )
            except AnsibleConnectionFailure:
                if left is None or time.monotonic() - started > float(self._task.args.get("timeout", DEFAULT_TIMEOUT)):
                    raise
                # What is known so far is here, so the wait can go on once the host is reached again.
                time.sleep(RECONNECTION_PAUSE)
                continue
            result.get("invocation", {}).get("module_args", {}).pop("_part", None)
            left = result.pop("_left", None)
            changes = result.pop("_changes", [])
            try:
                self._tell(result, changes, started, ended=left is None)
            except Exception as error:  # pylint: disable=broad-except
                # Whatever goes wrong with the telling, the wait goes on.
                display.vvv(f"clouddb: the progress of the wait can't be shown: {error!r}")
            if left is None:
                return result
            at_least = min(at_least * GROWTH, MAX_PART)

    def _tell(self, result: dict[str, Any], changes: list[dict[str, Any]], started: float, ended: bool) -> None:
        lines = progress_lines(result.get("operations", []), changes)
        now = time.monotonic()
        if not lines and not ended and now - self._told >= HEARTBEAT:
            lines = [heartbeat_line(result["operations"], now - started)]
        for line in lines:
            display.display(line)
            self._told = now


def progress_lines(operations: list[dict[str, Any]], changes: list[dict[str, Any]]) -> list[str]:
    """A line for each change of a status, for example
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
    """A line that says that the wait goes on, and for what."""
    going = [operation for operation in operations if operation["status"] not in SUCCEEDED]
    text = f"clouddb: waiting for {len(going)} of {len(operations)} operations ({elapsed:.0f} s)"
    return f"{text}, among them {_name(going[0])} {going[0]['status'] or 'not seen yet'}" if going else text


def _name(operation: dict[str, Any]) -> str:
    name = f"{operation['project_id']} {operation.get('action', 'operation')} {operation['id'][:8]}"
    return "".join(character if character.isprintable() else "?" for character in name)
