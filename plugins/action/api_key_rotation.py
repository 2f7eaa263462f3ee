# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses strategies in which a task may run on one host before the previous task has run on all others."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Runs the module, with a strategy for which the evidence of all hosts belongs to one run."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        strategy = str(self._task.get_play().strategy)
        # The strategy debug is linear as well, and so are those of other collections that are named so.
        if strategy.rpartition(".")[2] != "debug" and not strategy.endswith("linear"):
            hosts = list(task_vars.get("ansible_play_hosts_all", []))
            message = (
                f"The rotation requires the strategy linear, and the play has {strategy}. No key was created or revoked "
                f"for {', '.join(hosts)}. Set strategy: linear in the play."
            )
            return {
                **result,
                "failed": True,
                "msg": message,
                "failure": {"kind": "rotation_refused", "consumers": hosts},
            }
        return {**result, **self._execute_module(task_vars=task_vars)}
