# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: the installed collection, a fake AWX, a sandbox."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(Path(__file__).parent),
    str(CHECKOUT / "tests" / "unit" / "support"),
    str(CHECKOUT / "tests" / "tools"),
]

from awx_api import Awx, fake_awx  # noqa: E402
from jobs import Controller  # noqa: E402
from sandbox import Sandbox, running_sandbox  # noqa: E402
from workspace import temporary_workspace  # noqa: E402

# PyPI's package `ansible` contains awx.awx, so that the tests do not depend on Galaxy.
ANSIBLE = "ansible==12.3.0"
AWX_AWX = Path(sys.prefix) / "collections"


def pytest_configure(config: pytest.Config) -> None:
    """Download awx.awx once for all test runs, before the workers start."""
    if AWX_AWX.exists():
        return
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        download = [
            "-m",
            "pip",
            "download",
            "-qq",
            "--disable-pip-version-check",
            "--no-deps",
            "--dest",
            folder,
            ANSIBLE,
        ]
        subprocess.run([sys.executable, *download], check=True)
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(
                folder, [name for name in archive.namelist() if name.startswith("ansible_collections/awx/")]
            )
        wheel.unlink()
        Path(folder).rename(AWX_AWX)
        Path(folder).mkdir()


def installed(root: Path) -> Controller:
    """Build and install the collection in a new folder, whose path must not contain spaces."""
    root.mkdir(exist_ok=True)
    with temporary_workspace() as workspace:
        with workspace.start("ansible-galaxy", "collection", "build", "--output-path", str(root)) as build:
            assert build.wait() == 0
    (root / "venv").symlink_to(sys.prefix)
    controller = Controller(root, [root / "collections", AWX_AWX])
    [tarball] = root.glob("*.tar.gz")
    controller.run(
        "ansible-galaxy",
        "collection",
        "install",
        "--offline",
        "--collections-path",
        str(root / "collections"),
        str(tarball),
    )
    return controller


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Controller:
    return installed(tmp_path_factory.mktemp("controller"))


@pytest.fixture
def awx() -> Iterator[Awx]:
    with fake_awx() as running:
        yield running


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path, projects=[{"name": "shop", "compute": False}]) as running:
        running.control("PUT", "/clock", {"speed": 10})
        yield running
