# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scripted service for all examples of a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.clouddb.control.tests.unit.support.environment import clear_environment
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import ScriptedService, scripted_service


@pytest.fixture(scope="module", autouse=True)
def plain_environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        clear_environment(monkeypatch)
        yield


@pytest.fixture(scope="module")
def service() -> Iterator[ScriptedService]:
    with scripted_service() as running:
        yield running
        running.script.clear()
