# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes down the steps of a run in the file C(trace) of the folder ROTATION_TEST, and causes the event of C(event.json) there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: events
type: aggregate
short_description: Disturbs a run at a step
description:
  - Writes down the steps of a run, and causes an event at one of them.
options: {}
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "events"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(os.environ["ROTATION_TEST"])
        self.switch = self.folder / "switch"
        event = self.folder / "event.json"
        self.event: dict[str, Any] = json.loads(event.read_text()) if event.exists() else {"step": None}
        self.tasks: dict[str, list[str]] = {}
        self.step: list[Any] = []
        # All runs together build each module's payload only once.
        (Path(constants.DEFAULT_LOCAL_TMP) / "ansiballz_cache").symlink_to(os.environ["ROTATION_PAYLOADS"])

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        name = task.get_name().rpartition(" : ")[2]
        tasks = self.tasks.setdefault(name, [])
        if task._uuid in tasks:  # the strategy free starts a task once for each host
            return
        tasks.append(task._uuid)
        self.step = [name, len(tasks)]
        self.write(step=self.step, keys=self.keys(), files=self.files())
        if self.event.get("ends"):
            self.switch.unlink(missing_ok=True)
        if self.step == self.event["step"]:
            self.write(event=self.event["what"])
            getattr(self, self.event["what"])()

    def v2_runner_on_ok(self, result: Any) -> None:
        self.ended(result, "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self.ended(result, "failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self.ended(result, "unreachable")

    def ended(self, result: Any, status: str) -> None:
        content = result._result
        texts = [each.get("msg") for each in [content, *content.get("results", [])] if isinstance(each, dict)]
        self.write(
            result=status,
            host=result._host.get_name(),
            run_once=bool(result._task.run_once),
            messages=[str(text) for text in [*texts, *content.get("warnings", [])] if text],
        )
        if content.get("host_lists"):
            self.write(host_lists=content["host_lists"], host=result._host.get_name())
        if facts := content.get("ansible_facts", {}).get("api_key_rotation_result"):
            self.write(role_result=facts)
        if self.step == self.event["step"] and self.event["what"] == "killed_after":
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, **line: Any) -> None:
        with (self.folder / "trace").open("a") as trace:
            trace.write(json.dumps(line) + "\n")

    def keys(self) -> list[int]:
        url, secret = os.environ["CLOUDDB_BASE_URL"] + "/api_keys", os.environ["ROTATION_OBSERVER"]
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {secret}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return [key["id"] for key in json.load(response)]

    def files(self) -> dict[str, str]:
        return {
            path.name: path.read_text()
            for path in sorted(Path(os.environ["ROTATION_FILES"]).glob("*.*"))
            if path.is_file()
        }

    # The events.

    def switched(self) -> None:
        """Lets the connection of the host fail, until the next step unless it is unreachable."""
        what = self.event["what"]
        self.event["ends"] = what != "unreachable"
        self.switch.write_text(json.dumps({self.event["host"]: what.removesuffix("_once")}))

    unreachable = unreachable_once = fails = response_lost = switched

    def killed(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def killed_after(self) -> None:
        """Kills the run at the step's first result; see ended()."""

    def second_rotation(self) -> None:
        done = subprocess.run(
            self.event["command"],
            env={**os.environ, **self.event["environment"]},
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.write(second_rotation=done.returncode, output=done.stdout.decode())

    def edited(self) -> None:
        path = Path(self.event["path"])
        if self.event["content"] is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(self.event["content"])
