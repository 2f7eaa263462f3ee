# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses strategies in which a task may run on one host before the previous task has run on all others."""

from __future__ import annotations

from typing import Any

from ..plugin_utils._guarded_action import GuardedAction


class ActionModule(GuardedAction):
    """Runs the module, with a strategy for which the evidence of all hosts belongs to one run."""

    def refusal(self, task_vars: dict[str, Any]) -> dict[str, Any] | None:
        """The failure in a play with another strategy."""
        strategy = str(self._task.get_play().strategy)
        # The strategy debug is linear as well, and so are those of other collections that are named so.
        if strategy.rpartition(".")[2] == "debug" or strategy.endswith("linear"):
            return None
        hosts = list(task_vars.get("ansible_play_hosts_all", []))
        message = (
            f"The rotation requires the strategy linear, and the play has {strategy}. No key was created or revoked "
            f"for {', '.join(hosts)}. Set strategy: linear in the play."
        )
        return {"msg": message, "failure": {"kind": "rotation_refused", "consumers": hosts}}
