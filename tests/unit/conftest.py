# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much is tested: the same few examples of properties in each run, without the tests that take long, or with
--hypothesis-profile=soak all tests and many random examples.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings

# With the usual threshold, the garbage collector would take a quarter of the time of the collection of the tests.
gc.set_threshold(50_000, 20, 20)

# ansible-test has done this already, and provides less of Ansible to the Python of a target.
with suppress(ImportError):
    from ansible.plugins.loader import init_plugin_loader
    from ansible.utils.collection_loader import AnsibleCollectionConfig

    if AnsibleCollectionConfig.collection_finder is None:
        init_plugin_loader()

# A busy machine may be slow, so there is no deadline. All examples of a test share its fixtures.
settings.register_profile(
    "quick", max_examples=10, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile("soak", settings.get_profile("quick"), max_examples=1000, derandomize=False, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(config.getoption("--hypothesis-profile") or "quick")
    # What tests write need not survive a crash of the machine, and this would take most of the time of tests that write a lot.
    os.fsync = lambda _descriptor: None
    config.addinivalue_line("markers", "soak: takes long, and runs with --hypothesis-profile=soak only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--hypothesis-profile") != "soak":
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector leave out what all tests share. It would take an eighth of the time."""
    gc.collect()
    gc.freeze()
