# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the time of an attempt pass on a condition, so that the outcome is the same on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import Attempt
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import ScriptedService


def time_out_when(monkeypatch: pytest.MonkeyPatch, is_time_up: Callable[[Attempt], bool]) -> None:
    """Let C(api_timeout) of each attempt pass as soon as C(is_time_up), and not before."""
    join = Attempt.join

    def join_until(attempt: Attempt, timeout: float | None = None) -> None:
        until = time.monotonic() + (timeout or 0)
        while attempt.is_alive() and not is_time_up(attempt) and time.monotonic() < until:
            join(attempt, 0.01)

    monkeypatch.setattr(Attempt, "join", join_until)


def time_out_when_hanging(monkeypatch: pytest.MonkeyPatch, service: ScriptedService) -> None:
    """Let C(api_timeout) of an attempt pass as soon as the service's reply hangs."""

    def is_time_up(attempt: Attempt) -> bool:
        is_hanging = service.hanging.is_set()
        service.hanging.clear()
        return is_hanging

    time_out_when(monkeypatch, is_time_up)
