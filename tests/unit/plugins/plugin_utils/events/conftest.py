# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixtures of the modules' tests, and an event source that runs on their clock."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._events.emitter import EventQueue
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import Follower
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options
from ansible_collections.clouddb.control.tests.unit.plugins.conftest import plain_environment, serve
from ansible_collections.clouddb.control.tests.unit.plugins.modules.conftest import clock, sandbox, seed
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

__all__ = ["clock", "plain_environment", "sandbox", "seed", "serve", "source"]

Steps = dict[float, Callable[[], Any]]


class EventSource:
    """Runs followers against the sandbox; C(events) are those that they have emitted."""

    def __init__(self, sandbox: Sandbox, clock: FakeClock, state_file: Path):
        self.sandbox = sandbox
        self.clock = clock
        self.state_file = state_file
        self.events: list[dict[str, Any]] = []

    async def put(self, event: dict[str, Any], /) -> None:
        self.events.append(event)

    def follower(self, seconds: float, steps: Steps, queue: EventQueue | None = None, **args: Any) -> Follower:
        """A follower that is cancelled after C(seconds); the steps are run at their seconds."""
        left = dict(sorted(steps.items()))
        start = self.clock.elapsed

        async def sleep(pause: float) -> None:
            wakes = self.clock.elapsed + pause
            for at in [at for at in left if start + at <= wakes]:
                self.clock.sleep(max(0.0, start + at - self.clock.elapsed))
                left.pop(at)()
            if wakes > start + seconds:
                self.clock.sleep(max(0.0, start + seconds - self.clock.elapsed))
                assert not left
                raise asyncio.CancelledError
            self.clock.sleep(max(0.0, wakes - self.clock.elapsed))

        connection = {"base_url": self.sandbox.base_url, "api_key": self.sandbox.api_key}
        options = source_options({**connection, **args}, {})
        return Follower(options, queue or self, clock=self.clock.clock, sleep=sleep)

    def run(self, seconds: float, steps: Steps | None = None, **args: Any) -> list[str]:
        """Run a follower for C(seconds); the events that it emits, each as C(action previous_status > status)."""
        before = len(self.events)
        with suppress(asyncio.CancelledError):
            asyncio.run(self.follower(seconds, steps or {}, **args).run())
        return [summary(event) for event in self.events[before:]]


def summary(event: dict[str, Any]) -> str:
    content = event["clouddb"]
    return f"{content['operation']['action']} {content['previous_status']} > {content['operation']['status']}"


@pytest.fixture
def source(sandbox: Sandbox, clock: FakeClock, tmp_path: Path) -> EventSource:
    return EventSource(sandbox, clock, tmp_path / "state.json")
