# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: the installed collection, a fake AWX, a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from awx_api import Awx
from installation import download_collections, install_collection
from jobs import Controller
from sandbox import Sandbox, running_sandbox
from scripted_service import scripted_service


def awx_collection() -> Path:
    return download_collections("12.3.0", "awx.awx")


def pytest_configure(config: pytest.Config) -> None:
    """Download the collection before the workers start."""
    awx_collection()


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    root = tmp_path_factory.mktemp("controller")
    return Controller(root, [install_collection(root), awx_collection()])


@pytest.fixture
def awx() -> Iterator[Awx]:
    with scripted_service(service_class=Awx) as running:
        yield running


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path, projects=[{"name": "shop", "compute": False}]) as running:
        running.control("PUT", "/clock", {"speed": 10})
        yield running
