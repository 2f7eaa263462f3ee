# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses delegation, with which one host would confirm for another. Keeps P6."""

from __future__ import annotations

from typing import Any

from ..plugin_utils._fork import ForkAction, load


class ActionModule(ForkAction):
    """Runs the module on the host of the task."""

    module = load(__name__)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, or the failure of a delegated task."""
        host = str((task_vars or {}).get("inventory_hostname"))
        if self._task.delegate_to in (None, "", host):
            return super().run(tmp, task_vars)
        message = (
            f"The task is delegated to {self._task.delegate_to}, which can't confirm what {host} holds. Nothing was changed. "
            "Remove delegate_to from the task, the role and the blocks around them."
        )
        return {"failed": True, "msg": message, "failure": {"kind": "deployment_refused"}}
