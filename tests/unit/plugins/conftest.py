# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment without settings for proxies, certificates and the service, and scripted services."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ansible_collections.clouddb.control.tests.unit.support.environment import clear_environment
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, scripted
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, scripted_service


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a service that follows a script, and a client of it."""
    with ExitStack() as running:

        def start(*script: Reply, tls: bool | ssl.SSLContext = False, **options: Any) -> Scripted:
            return scripted(running.enter_context(scripted_service(*script, tls=tls)), **options)

        yield start
