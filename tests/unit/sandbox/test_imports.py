# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layers of the server: a file imports only files of its own layer or of lower ones, without cycles."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3] / "roles" / "sandbox" / "files" / "clouddb_sandbox"
# Lowest first: basics, models, the database, the domain, HTTP, and the server.
LAYERS = (
    "atomic_file clock identifiers lifecycle lock paths rewriting rules settings",
    "rate_limit request_models response_models responses seed_models",
    "operation_plans pagination store",
    "branches computes connections databases keys limits operations permissions platform_activity projects recovery roles seed_loader"
    " snapshots",
    "fault_injection faults middleware routes state",
    "__main__ app server",
)
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}


def imported(path):
    """The files or folders of the package that a file imports, all imports within it being relative."""
    level = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == level:
            yield from [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]


def test_imports_point_down():
    graph = {}
    for path in PACKAGE.rglob("[!_]*.py"):
        graph.setdefault(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), set()).update(imported(path))
    graph["__main__"] = set(imported(PACKAGE / "__main__.py"))
    assert graph.keys() == RANKS.keys()
    assert {(name, other) for name, others in graph.items() for other in others if RANKS[other] > RANKS[name]} == set()
    assert set(TopologicalSorter(graph).static_order()) == RANKS.keys()
