# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sandbox is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Settings:
    """`api_key` is the secret of the account's first key; `seed` is looked at only while the database is new."""

    database: Path
    api_key: str
    seed: dict[str, Any] | None = None
    speed: float | None = None
    """Sandbox seconds in a real second; None: what it was, 1 in a new database."""
