# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account whose keys are rotated."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.rotation.rotations import Keys, add_key
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount


@pytest.fixture
def account() -> SimulatedAccount:
    return SimulatedAccount()


@pytest.fixture
def keys(account: SimulatedAccount) -> Keys:
    """An account with three keys that were used."""
    return account, [add_key(account) for _number in range(3)]
