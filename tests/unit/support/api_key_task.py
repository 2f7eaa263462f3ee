# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs api_key without AnsibleModule."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of

OLD_SECRET = "old-secret-0123456789abcdef0123456789abcdef0123456789abcdef01234"

one_key = pytest.mark.parametrize(
    "seed", [{"api_keys": [{"name": "deploy", "key": OLD_SECRET, "age": "1d"}]}], ids=["one key"]
)


def task(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of the module with these options."""
    params = {**defaults_of(api_key), **options, "dest": str(options["dest"]) if "dest" in options else None}
    return api_key.run(params, client, check_mode, set_private_mode)


def set_private_mode(path: str) -> bool:
    """Set mode 0600, in place of the options owner, group and mode; returns whether that was a change."""
    if mode_of(path) == 0o600:
        return False
    os.chmod(path, 0o600)
    return True


def mode_of(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def ids(keys: list[dict[str, Any]]) -> list[int]:
    return [key["id"] for key in keys]
