# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layers of the server: a file imports only files of its own layer or of lower ones, without cycles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "roles" / "sandbox" / "files" / "clouddb_sandbox"
# Lowest first.
LAYERS = {
    "basics": {"atomic_file", "clock", "identifiers", "lifecycle", "lock", "paths", "rewriting", "settings"},
    "models": {"rate_limit", "request_models", "response_models", "responses", "seed_models"},
    "database": {"operation_plans", "pagination", "store"},
    "domain": {
        "branches",
        "computes",
        "connections",
        "databases",
        "keys",
        "operations",
        "platform_activity",
        "projects",
        "roles",
        "seed_loader",
    },
    "http": {"fault_injection", "faults", "middleware", "routes", "state"},
    "server": {"__main__", "app", "server", "threaded_server"},
}
RANKS = {name: rank for rank, names in enumerate(LAYERS.values()) for name in names}


def imported(path):
    """The files or folders of the package that a file imports, all imports within it being relative."""
    level = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == level:
            yield from [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]


def imports_by_name():
    graph = {}
    for path in PACKAGE.rglob("*.py"):
        if path.name != "__init__.py":
            name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
            graph.setdefault(name, set()).update(imported(path))
    return graph


def test_every_file_has_a_layer():
    assert imports_by_name().keys() == RANKS.keys()


@pytest.mark.parametrize("name", sorted(RANKS))
def test_imports_point_down(name):
    imports = imports_by_name()[name]
    assert imports <= RANKS.keys()
    assert {other for other in imports if RANKS[other] > RANKS[name]} == set()


def test_imports_have_no_cycles():
    assert set(TopologicalSorter(imports_by_name()).static_order()) == RANKS.keys()
