# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs ansible-playbook in directories with short names, against a sandbox on a real socket."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A temporary directory. ansible-core 2.22 opens a socket below TMPDIR, whose path may have 107 characters."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def sandbox(served_sandbox: Sandbox) -> Sandbox:
    return served_sandbox
