# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills ansible-playbook at the task in KILL_AT: "TASK" when the task starts, "TASK on HOST" when it has finished on the host."""

from __future__ import annotations

import os
import signal
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: kill_at
type: aggregate
short_description: Kills ansible-playbook at a task
description:
  - Kills ansible-playbook at the task that E(KILL_AT) names.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "kill_at"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self.kill_at(task.get_name())

    def v2_runner_on_ok(self, result: Any) -> None:
        if result._task.action != "ansible.builtin.include_tasks":
            self.kill_at(f"{result._task.get_name()} on {result._host.get_name()}")

    def kill_at(self, place: str) -> None:
        if place.rpartition(" : ")[2] == os.environ.get("KILL_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
