# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses delegation, with which one host would confirm for another. Keeps P6."""

from __future__ import annotations

from typing import Any

from ..plugin_utils._guarded_action import GuardedAction


class ActionModule(GuardedAction):
    """Runs the module on the host of the task."""

    def refusal(self, task_vars: dict[str, Any]) -> dict[str, Any] | None:
        """The failure of a delegated task."""
        host = str(task_vars.get("inventory_hostname"))
        if self._task.delegate_to in (None, "", host):
            return None
        message = (
            f"The task is delegated to {self._task.delegate_to}, which can't confirm what {host} holds. Nothing was changed. "
            "Remove delegate_to from the task, the role and the blocks around them."
        )
        return {"msg": message, "failure": {"kind": "deployment_refused"}}
