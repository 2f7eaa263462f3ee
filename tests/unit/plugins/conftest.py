# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment without settings for proxies, certificates and the service, scripted services, and sandboxes."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.progress import Progress, progress_pipe
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Scripted, Serve, scripted
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import Reply, scripted_service

if TYPE_CHECKING:
    from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox


@pytest.fixture(scope="session", autouse=True)
def plain_environment() -> Iterator[None]:
    """Remove this machine's settings for proxies, certificates and the service."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in list(os.environ):
            if re.search(r"(?i)_proxy$|^CLOUDDB_|^(REQUESTS|CURL)_CA_BUNDLE$|^NETRC$", name):
                monkeypatch.delenv(name)
        yield


@pytest.fixture
def is_soak(request: pytest.FixtureRequest) -> bool:
    """Whether to test every case (--hypothesis-profile=soak), which takes long."""
    return bool(request.config.getoption("--hypothesis-profile", None) == "soak")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a service that follows a script, and a client of it."""
    with ExitStack() as running:

        def start(*script: Reply, tls: bool | ssl.SSLContext = False, **options: Any) -> Scripted:
            return scripted(running.enter_context(scripted_service(*script, tls=tls)), **options)

        yield start


@pytest.fixture
def seed() -> dict[str, Any]:
    """The content of the account of the sandbox; test files override it."""
    return {}


@pytest.fixture
def sandbox(seed: dict[str, Any]) -> Iterator[Sandbox]:
    # The sandbox needs a later Python than the oldest one of targets, where the tests of module_utils run.
    from ansible_collections.clouddb.control.tests.unit.support.sandbox import sandbox_in_process

    with sandbox_in_process(**seed) as running:
        yield running


@pytest.fixture
def served_sandbox(tmp_path_factory: pytest.TempPathFactory, seed: dict[str, Any]) -> Iterator[Sandbox]:
    """A sandbox on a real socket, for other processes. Where a file calls it C(sandbox), other fixtures use it, too."""
    from ansible_collections.clouddb.control.tests.unit.support.sandbox import running_sandbox

    with running_sandbox(tmp_path_factory.mktemp("sandbox"), **seed) as running:
        yield running


@pytest.fixture
def clock(sandbox: Sandbox) -> FakeClock:
    """A clock whose pauses take no time and advance the sandbox's clock."""
    return FakeClock(on_sleep=sandbox.advance)


@pytest.fixture
def progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Progress]:
    """Returns the lines that the task has written about its progress so far."""
    with progress_pipe(tmp_path / "progress", monkeypatch) as lines:
        yield lines
