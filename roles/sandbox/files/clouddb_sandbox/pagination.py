# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pagination, newest first (api.md, "Pagination object" and "Paging").

A cursor has the format of a timestamp: the last item's `created_at`, with its sequence number as further digits of the
fraction, which distinguishes items with the same `created_at`. Its `:` and `+` reveal clients that do not encode it.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import datetime
from typing import Any, Literal

from fastapi import HTTPException

from .clock import format_iso, to_microseconds
from .response_models import Pagination
from .store import Transaction

CURSOR = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})(\d{12})\+00:00")


def encode_cursor(row: sqlite3.Row) -> str:
    return f"{format_iso(row['created_at'])}{row['seq']:012d}+00:00"


def decode_cursor(cursor: str) -> tuple[int, int]:
    """Return the `created_at` and `seq` of a cursor. Raises a 400 error if it is not one."""
    match = CURSOR.fullmatch(cursor)
    if not match:
        raise HTTPException(400, f"cursor: {cursor!r} is not a cursor of this API. Send it URL-encoded.")
    try:
        return to_microseconds(datetime.fromisoformat(match[1] + "+00:00")), int(match[2])
    except ValueError as error:
        raise HTTPException(400, f"cursor: {error}") from error


def select_page(
    tx: Transaction,
    table: str,
    conditions: list[str],
    values: list[Any],
    cursor: str | None,
    limit: int,
    order: Literal["ASC", "DESC"] = "DESC",
) -> list[sqlite3.Row]:
    """Return one page of a table."""
    if cursor is not None:
        conditions = [*conditions, f"(created_at, seq) {'<' if order == 'DESC' else '>'} (?, ?)"]
        values = [*values, *decode_cursor(cursor)]
    where = " AND ".join(conditions)
    return tx.db.execute(
        f"SELECT * FROM {table} WHERE {where} ORDER BY created_at {order}, seq {order} LIMIT ?", [*values, limit]
    ).fetchall()


def pagination_of(page: list[sqlite3.Row]) -> Pagination | None:
    """Return the pagination object of a page, unless the page is empty."""
    return Pagination(cursor=encode_cursor(page[-1])) if page else None
