# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages, newest first (api.md, "Pagination object" and "Paging").

A cursor looks like a timestamp: the last item's `created_at`, with its sequence number as further digits of the
fraction. That keeps items with the same `created_at` apart. Its `:` and `+` catch clients that do not encode it.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import datetime
from typing import Any

from fastapi import HTTPException

from .clock import iso, moment_of
from .resources import Pagination
from .store import Transaction

CURSOR = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})(\d{12})\+00:00")


def cursor_of(row: sqlite3.Row) -> str:
    return f"{iso(row['created_at'])}{row['seq']:012d}+00:00"


def position_of(cursor: str) -> tuple[int, int]:
    found = CURSOR.fullmatch(cursor)
    if not found:
        raise HTTPException(400, f"cursor: {cursor!r} is not a cursor of this API (it must be URL-encoded)")
    try:
        return moment_of(datetime.fromisoformat(found[1] + "+00:00")), int(found[2])
    except ValueError as error:
        raise HTTPException(400, f"cursor: {error}") from error


def select_page(
    tx: Transaction, table: str, conditions: list[str], values: list[Any], cursor: str | None, limit: int
) -> tuple[list[sqlite3.Row], Pagination | None]:
    """One page of a table, and what leads to the next: a cursor even on the last page that holds something."""
    if cursor is not None:
        conditions = [*conditions, "(created_at, seq) < (?, ?)"]
        values = [*values, *position_of(cursor)]
    where = " AND ".join(conditions)
    rows = tx.db.execute(
        f"SELECT * FROM {table} WHERE {where} ORDER BY created_at DESC, seq DESC LIMIT ?", [*values, limit]
    ).fetchall()
    return rows, Pagination(cursor=cursor_of(rows[-1])) if rows else None
