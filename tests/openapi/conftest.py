# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenAPI document of the public service, and a mock of the service for each test."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from document import Document
from mock_service import Contract, MockService, running_mock

from ansible_collections.clouddb.control.tests.unit.plugins.conftest import plain_environment
from ansible_collections.clouddb.control.tests.unit.plugins.modules.conftest import no_delays

__all__ = ["no_delays", "plain_environment"]

# The service's own client package has its OpenAPI document. The package has the MIT license, but the document calls itself
# proprietary, so it is downloaded instead of copied into this repository.
PACKAGE = "@neondatabase/api-client@2.7.3"
FILE = "package/public-v2-for-users.gen.yaml"
DOWNLOADED = Path(sys.prefix) / "openapi"


def download() -> None:
    """Download the package once for all test runs."""
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        npm = Path(sys.prefix) / "bin" / "npm"
        command = [npm, "pack", "--silent", "--pack-destination", folder, PACKAGE]
        # A network may have a certificate authority of its own, which only the system knows.
        env = {**os.environ, "NODE_OPTIONS": f"{os.environ.get('NODE_OPTIONS', '')} --use-system-ca"}
        subprocess.run(command, env=env, check=True, stdout=sys.stderr)
        [package] = Path(folder).glob("*.tgz")
        with tarfile.open(package) as archive:
            document = archive.extractfile(FILE)
            assert document
            downloaded = Path(folder) / DOWNLOADED.name
            downloaded.mkdir()
            (downloaded / Path(FILE).name).write_bytes(document.read())
        downloaded.rename(DOWNLOADED)


def read_document() -> Document:
    if not DOWNLOADED.exists():
        download()
    return Document.read(DOWNLOADED / Path(FILE).name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that has a parameter C(operation) for every operation whose bodies are JSON."""
    if "operation" in metafunc.fixturenames:
        contract = metafunc.config.stash[CONTRACT]
        operations = [each for each in contract.operations.values() if contract.document.has_only_json(each)]
        metafunc.parametrize("operation", operations, ids=str)


CONTRACT = pytest.StashKey[Contract]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[CONTRACT] = Contract(read_document())


@pytest.fixture(scope="session")
def contract(pytestconfig: pytest.Config) -> Contract:
    return pytestconfig.stash[CONTRACT]


class Examples:
    """The document's example responses."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract

    def __getitem__(self, operation: str) -> Any:
        _status, body = self._contract.document.example_response(self._contract.operations[operation])
        return copy.deepcopy(body)


@pytest.fixture
def examples(contract: Contract) -> Examples:
    return Examples(contract)


@pytest.fixture
def service(contract: Contract) -> Iterator[MockService]:
    """A mock of the public service. The test fails if a request or response was invalid."""
    with running_mock(contract) as running:
        yield running
    assert running.violations == []
