# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixtures of the plugins' tests, and an event source that runs on their clock."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import ChangeSource
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import change_options
from ansible_collections.clouddb.control.tests.unit.plugins.conftest import plain_environment, serve
from ansible_collections.clouddb.control.tests.unit.plugins.modules.conftest import clock, sandbox, seed
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

__all__ = ["clock", "follow", "plain_environment", "sandbox", "seed", "serve"]

Steps = dict[float, Callable[[], Any]]


class Follow:
    """Runs event sources against the sandbox; C(events) are what they have told."""

    def __init__(self, sandbox: Sandbox, clock: FakeClock, state_file: Path):
        self.sandbox = sandbox
        self.clock = clock
        self.state_file = state_file
        self.events: list[dict[str, Any]] = []

    async def put(self, event: dict[str, Any], /) -> None:
        self.events.append(event)

    def source(self, seconds: float, steps: Steps, **args: Any) -> ChangeSource:
        """A source that is cancelled after so many seconds; the steps are taken at their seconds."""
        left = dict(sorted(steps.items()))
        began = self.clock.elapsed

        async def sleep(pause: float) -> None:
            wakes = self.clock.elapsed + pause
            for at in [at for at in left if began + at <= wakes]:
                self.clock.sleep(max(0.0, began + at - self.clock.elapsed))
                left.pop(at)()
            if wakes > began + seconds:
                self.clock.sleep(max(0.0, began + seconds - self.clock.elapsed))
                assert not left
                raise asyncio.CancelledError
            self.clock.sleep(max(0.0, wakes - self.clock.elapsed))

        connection = {"base_url": self.sandbox.base_url, "api_key": self.sandbox.api_key}
        return ChangeSource(change_options({**connection, **args}, {}), self, clock=self.clock.clock, sleep=sleep)

    def run(self, seconds: float, steps: Steps | None = None, **args: Any) -> list[str]:
        """Run a source for so long; what it has told, each as C(action previous_status > status)."""
        told = len(self.events)
        with suppress(asyncio.CancelledError):
            asyncio.run(self.source(seconds, steps or {}, **args).run())
        return [tell(event) for event in self.events[told:]]


def tell(event: dict[str, Any]) -> str:
    about = event["clouddb"]
    return f"{about['operation']['action']} {about['previous_status']} > {about['operation']['status']}"


@pytest.fixture
def follow(sandbox: Sandbox, clock: FakeClock, tmp_path: Path) -> Follow:
    return Follow(sandbox, clock, tmp_path / "state.json")
