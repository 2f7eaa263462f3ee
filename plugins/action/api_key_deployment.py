# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses delegation, with which one host would confirm for another. Keeps P6."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Runs the module on the host of the task."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, or the failure of a delegated task."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        host = str((task_vars or {}).get("inventory_hostname"))
        if self._task.delegate_to in (None, "", host):
            return {**result, **self._execute_module(task_vars=task_vars)}
        message = (
            f"The task is delegated to {self._task.delegate_to}, which can't confirm what {host} holds. Nothing was changed. "
            "Remove delegate_to from the task, the role and the blocks around them."
        )
        return {**result, "failed": True, "msg": message, "failure": {"kind": "deployment_refused"}}
