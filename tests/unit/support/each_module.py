# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every module that users call, with few valid options, for tests of what all modules have in common."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest

SHOP = "wispy-lake-12345678"
OPTIONS: dict[str, dict[str, Any]] = {
    "api_key": {"name": "deploy"},
    "api_key_info": {},
    "api_key_policy": {},
    "api_request": {"path": "projects", "all_pages": True},
    "branch": {"project": SHOP, "name": "preview", "state": "absent"},
    "branch_info": {"project": SHOP},
    "branch_restore": {"project": SHOP, "name": "main", "timestamp": "1m", "preserve_as": "old", "wait": False},
    "compute": {"project": SHOP, "type": "read_only", "state": "absent"},
    "compute_info": {"project": SHOP},
    "connection_info": {"project": SHOP, "database": "clouddb"},
    "database": {"project": SHOP, "name": "orders", "state": "absent"},
    "database_info": {"project": SHOP},
    "database_user": {"project": SHOP, "name": "app", "state": "absent"},
    "database_user_info": {"project": SHOP},
    "operation_info": {"project_id": SHOP},
    "operation_wait": {"project_id": SHOP, "operation_id": ["done"]},
    "project": {"name": "store", "wait": False},
    "project_info": {},
    "snapshot": {"project": SHOP, "name": "nightly", "state": "absent"},
    "snapshot_info": {"project": SHOP},
}


def module_named(name: str) -> ModuleType:
    return importlib.import_module(f"ansible_collections.clouddb.control.plugins.modules.{name}")


EACH_MODULE = [(module_named(name), options) for name, options in OPTIONS.items()]
# Those that change something then.
CHANGES = {"api_key", "branch_restore", "project"}
of_every_module = pytest.mark.parametrize("module, options", EACH_MODULE)


def sampled(*rows: Any, stride: int) -> list[Any]:
    """Of these values of parameters, one in C(stride); the others with --hypothesis-profile=soak only."""
    return [pytest.param(*row, marks=[pytest.mark.soak] if number % stride else []) for number, row in enumerate(rows)]


def name_of(module: ModuleType) -> str:
    """The name of the module, as tasks call it."""
    return module.__name__.rpartition(".")[2]
