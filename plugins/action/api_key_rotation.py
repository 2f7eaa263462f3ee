# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses strategies in which a task may run on one host before the previous task has run on all others. Keeps P6."""

from __future__ import annotations

from typing import Any

from ..plugin_utils._fork import ForkAction, load

RENAMED = {
    "api_key_rotation_consumers": "api_key_rotation_hosts",
    "api_key_rotation_former_consumers": "api_key_rotation_retired_hosts",
}


class ActionModule(ForkAction):
    """Runs the module, with a strategy in which all hosts confirm a step before the next one begins."""

    module = load(__name__)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, or the failure in a play with another strategy. Names the variables that have another name now."""
        variables = task_vars or {}
        for name in RENAMED.keys() & variables.keys():
            self._display.deprecated(
                f"The variable {name} is now {RENAMED[name]}.", version="4.0.0", collection_name="clouddb.control"
            )
        strategy = str(self._task.get_play().strategy)
        # The strategy debug is linear as well, and so are those of other collections that are named so.
        if strategy.rpartition(".")[2] == "debug" or strategy.endswith("linear"):
            return super().run(tmp, task_vars)
        message = (
            f"The rotation requires the strategy linear, and the play has {strategy}. No key was created or revoked. "
            "Set strategy: linear in the play."
        )
        hosts = list(variables.get("ansible_play_hosts_all", []))
        return {"failed": True, "msg": message, "failure": {"kind": "rotation_refused", "hosts": hosts}}
