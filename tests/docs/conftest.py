# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures to follow the guides: the tarball of the collection, and a reader with a shell in an empty directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from installation import build_tarball, user_environment
from reader import Reader
from shell import Shell
from workspace import CHECKOUT

PROJECTS = yaml.safe_load((CHECKOUT / "playbooks/files/guides_account.yml").read_text(encoding="utf-8"))["projects"]


def pytest_configure(config: pytest.Config) -> None:
    # antsibull_docutils uses a deprecated function of docutils.
    config.addinivalue_line("filterwarnings", "ignore::PendingDeprecationWarning")


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader in an empty directory, who has Python, and the tarball of the collection in place of Galaxy."""
    home = tmp_path_factory.mktemp("reader")
    tarball = build_tarball(home)
    env = user_environment(
        home,
        # One host at a time, so that the output has the order that the guides show.
        ANSIBLE_FORKS="1",
        ANSIBLE_INVENTORY_UNPARSED_WARNING="false",
        ANSIBLE_LOCALHOST_WARNING="false",
        COLLECTION_TARBALL=str(tarball),
        # As in a terminal, standard output and standard error keep their order.
        PYTHONUNBUFFERED="1",
    )
    directory = home / "guides"
    directory.mkdir()
    shell = Shell(directory, env)
    yield Reader(shell)
    shell.close()
