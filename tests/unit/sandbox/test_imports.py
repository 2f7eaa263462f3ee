# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layers of the server: a file imports only files of its own layer or of lower ones, without cycles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

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
    "server": {"__main__", "app", "server"},
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


def test_imports_point_down():
    graph = imports_by_name()
    assert graph.keys() == RANKS.keys()
    up = {(name, other) for name, others in graph.items() for other in others if RANKS[other] > RANKS[name]}
    assert up == set()
    assert set(TopologicalSorter(graph).static_order()) == RANKS.keys()
