# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Learns the steps of the role, and starts an account for each worker."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from account import Account, running_account
from cells import all_cells, key
from scenarios import SCENARIOS, Scenario

STEPS = pytest.StashKey[dict[str, list[dict[str, Any]]]]()
FAST = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cells", type=int, default=FAST, help="how many cells of the matrix to run; 0: all, which takes hours"
    )
    parser.addoption("--only", metavar="PATTERN", help="run all cells whose name contains this pattern")


def pytest_configure(config: pytest.Config) -> None:
    """Learn the steps once, before the workers start."""
    if hasattr(config, "workerinput"):
        config.stash[STEPS] = json.loads(config.workerinput["steps"])
    else:
        config.stash[STEPS] = learn_steps(SCENARIOS if config.getoption("--cells") == 0 else SCENARIOS[:1])


def pytest_configure_node(node: Any) -> None:
    node.workerinput["steps"] = json.dumps(node.config.stash[STEPS])


def learn_steps(scenarios: tuple[Scenario, ...]) -> dict[str, list[dict[str, Any]]]:
    """The steps of an undisturbed run of each scenario, with and without deployment tasks."""

    def learn(tasks: bool) -> dict[str, list[dict[str, Any]]]:
        found = {}
        with tempfile.TemporaryDirectory() as folder, running_account(Path(folder)) as account:
            for scenario in scenarios:
                account.restore(scenario.start, tasks)
                found[key(scenario, tasks)] = account.run(scenario, tasks=tasks).steps()
        return found

    with ThreadPoolExecutor() as pool:
        dest, both = pool.map(learn, (False, True))
    return {**dest, **both}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" in metafunc.fixturenames:
        cells = all_cells(metafunc.config.stash[STEPS])
        if pattern := metafunc.config.getoption("--only"):
            cells = [cell for cell in cells if re.search(pattern, str(cell))]
        else:
            cells = cells[: metafunc.config.getoption("--cells") or None]
        metafunc.parametrize("cell", cells, ids=str)


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with running_account(tmp_path_factory.mktemp("account")) as running:
        yield running
