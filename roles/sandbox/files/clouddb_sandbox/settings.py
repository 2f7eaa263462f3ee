# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings that a sandbox starts with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Settings:
    """`api_key` is the secret of the account's first key; `seed` and its checksum are used only when the database is new."""

    database: Path
    api_key: str
    seed: dict[str, Any] | None = None
    seed_checksum: str | None = None
    speed: float | None = None
    """Sandbox seconds per real second; None keeps the stored speed, which is 1 in a new database."""
    lock: Literal["branch", "project"] = "branch"
    """What an unfinished operation locks for most writes."""
    limits: Mapping[str, int | None] = field(default_factory=dict)
    """The limits of a plan; see limits.py."""
