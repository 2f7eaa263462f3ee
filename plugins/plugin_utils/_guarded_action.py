# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of the action plugins that run a module only where its confirmations can be trusted. Keeps P6."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class GuardedAction(ActionBase):
    """Runs the module of the same name, unless there is a reason to refuse."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, or the failure."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        refusal = self.refusal(task_vars or {})
        if refusal:
            return {**result, "failed": True, **refusal}
        return {**result, **self._execute_module(task_vars=task_vars)}

    def refusal(self, task_vars: dict[str, Any]) -> dict[str, Any] | None:
        """The C(msg) and C(failure) of a task that is refused; None if it is not."""
        raise NotImplementedError
