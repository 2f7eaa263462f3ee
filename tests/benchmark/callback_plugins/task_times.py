# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Appends start and end of each task to the file in BENCHMARK_TASK_TIMES, one JSON object per line."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    """Supports plays with a single host only."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_times"

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._started = time.time()

    def v2_runner_on_ok(self, result: Any) -> None:
        ended = time.time()
        details = {name: value for name, value in result._result.items() if isinstance(value, (int, float, str))}
        line = json.dumps(
            {"name": result._task.get_name(), "started": self._started, "ended": ended, "result": details}
        )
        with open(os.environ["BENCHMARK_TASK_TIMES"], "a", encoding="utf-8") as file:
            file.write(line + "\n")
