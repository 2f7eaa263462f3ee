# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pagination, newest first (api.md, "Pagination object" and "Paging").

A cursor has the format of a timestamp: the last item's `created_at`, with its sequence number as further digits of the
fraction, which distinguishes items with the same `created_at`. Its `:` and `+` reveal clients that do not encode it.
"""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from datetime import datetime
from typing import Any

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


def encode_keys(value: str | int, seq: int) -> str:
    """Return an opaque cursor: the sort key of the last item, and its sequence number."""
    return base64.urlsafe_b64encode(json.dumps([value, seq]).encode()).decode()


def decode_keys(cursor: str) -> list[Any]:
    """Return what encode_keys() got. Raises a 400 error if the cursor is not of it."""
    try:
        value, seq = json.loads(base64.urlsafe_b64decode(cursor))
        if (
            isinstance(value, (str, int))
            and isinstance(seq, int)
            and all(-(2**63) <= number < 2**63 for number in (seq, value) if isinstance(number, int))
        ):
            return [value, seq]
    except (ValueError, TypeError):
        pass
    raise HTTPException(400, f"cursor: {cursor!r} is not a cursor of this API. Send it as it came.")


def select_page(
    tx: Transaction,
    table: str,
    conditions: list[str],
    values: list[Any],
    cursor: str | None,
    limit: int,
) -> list[sqlite3.Row]:
    """Return one page of a table."""
    if cursor is not None:
        conditions = [*conditions, "(created_at, seq) < (?, ?)"]
        values = [*values, *decode_cursor(cursor)]
    where = " AND ".join(conditions)
    return tx.db.execute(
        f"SELECT * FROM {table} WHERE {where} ORDER BY created_at DESC, seq DESC LIMIT ?", [*values, limit]
    ).fetchall()


def pagination_of(page: list[sqlite3.Row]) -> Pagination | None:
    """Return the pagination object of a page, unless the page is empty."""
    return Pagination(cursor=encode_cursor(page[-1])) if page else None
