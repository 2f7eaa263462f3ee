# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate authorities for each test file."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.tests.unit.plugins.security.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that has issued none of the certificates."""
    return Authority(tmp_path_factory.mktemp("other-authority"))
