# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenAPI document of the public service, and a mock of the service for each test."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from document import Document
from mock_service import Contract, MockService, running_mock

from ansible_collections.clouddb.control.tests.unit.plugins.conftest import plain_environment
from ansible_collections.clouddb.control.tests.unit.plugins.modules.conftest import no_delays

__all__ = ["no_delays", "plain_environment"]

# The service's own client package contains its OpenAPI document. The document names no licence that permits copies,
# so it is downloaded instead of stored here.
PACKAGE = "@neondatabase/api-client@2.7.3"
FILE = "package/public-v2-for-users.gen.yaml"
DOWNLOADED = Path(sys.prefix) / "openapi"


def download() -> None:
    """Download the package once for all test runs."""
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        npm = Path(sys.prefix) / "bin" / "npm"
        subprocess.run([npm, "pack", "--silent", "--pack-destination", folder, PACKAGE], check=True, stdout=sys.stderr)
        [package] = Path(folder).glob("*.tgz")
        with tarfile.open(package) as archive:
            archive.extract(FILE, folder, filter="data")
        (Path(folder) / "package").rename(DOWNLOADED)


def read_document() -> Document:
    if not DOWNLOADED.exists():
        download()
    return Document.read(DOWNLOADED / Path(FILE).name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that has a parameter C(operation) for every operation of the document."""
    if "operation" in metafunc.fixturenames:
        metafunc.parametrize("operation", metafunc.config.stash[CONTRACT].operations.values(), ids=str)


CONTRACT = pytest.StashKey[Contract]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[CONTRACT] = Contract(read_document())


@pytest.fixture(scope="session")
def contract(pytestconfig: pytest.Config) -> Contract:
    return pytestconfig.stash[CONTRACT]


@pytest.fixture
def service(contract: Contract) -> Iterator[MockService]:
    """A mock of the public service. The test fails if a request or response was invalid."""
    with running_mock(contract) as running:
        yield running
    assert running.violations == []
