# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scripted service for all examples of a test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ansible_collections.clouddb.control.tests.unit.support.scripted_service import ScriptedService, scripted_service


@pytest.fixture(scope="module", autouse=True)
def plain_environment() -> Iterator[None]:
    """Remove the settings of this machine that the code under test would read."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if (
                name.lower().endswith("_proxy")
                or name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC")
                or name.startswith("CLOUDDB_")
            ):
                patch.delenv(name)
        yield


@pytest.fixture(scope="module")
def service() -> Iterator[ScriptedService]:
    with scripted_service() as running:
        yield running
        running.script.clear()
