# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases of a branch."""

from __future__ import annotations

import sqlite3

from fastapi import HTTPException

from .clock import format_timestamp
from .response_models import Database
from .responses import unique_name
from .rules import RESERVED_DATABASE_NAMES
from .store import Transaction


def insert(tx: Transaction, branch_id: str, name: str, owner_name: str, created_at: int | None = None) -> Database:
    """Insert a database. Raises a 409 error if the name exists, and a 422 error if it is reserved."""
    require_name(name)
    created_at = created_at or tx.unique_time()
    with unique_name(f"branch {branch_id}", "database", name):
        tx.db.execute(
            "INSERT INTO databases (branch_id, name, owner_name, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
            (branch_id, name, owner_name, created_at, created_at),
        )
    return get(tx, branch_id, name)


def require_name(name: str) -> None:
    if name in RESERVED_DATABASE_NAMES:
        raise HTTPException(422, f"the database name {name} is reserved")


def list_all(tx: Transaction, branch_id: str) -> list[Database]:
    rows = tx.db.execute("SELECT * FROM databases WHERE branch_id = ? ORDER BY id", (branch_id,))
    return [from_row(row) for row in rows]


def find(tx: Transaction, branch_id: str, name: str) -> Database | None:
    row = tx.db.execute("SELECT * FROM databases WHERE branch_id = ? AND name = ?", (branch_id, name)).fetchone()
    return from_row(row) if row else None


def get(tx: Transaction, branch_id: str, name: str) -> Database:
    """Return the database. Raises a 404 error if the branch has none of this name."""
    database = find(tx, branch_id, name)
    if database is None:
        raise HTTPException(404, f"database {name} not found on branch {branch_id}")
    return database


def update(tx: Transaction, database: Database, name: str, owner_name: str) -> Database:
    """Rename a database and set its owner. Raises a 409 error if another one has this name, and a 422 error if it is reserved."""
    require_name(name)
    with unique_name(f"branch {database.branch_id}", "database", name):
        tx.db.execute(
            "UPDATE databases SET name = ?, owner_name = ?, updated_at = ? WHERE id = ?",
            (name, owner_name, tx.unique_time(), database.id),
        )
    return get(tx, database.branch_id, name)


def delete(tx: Transaction, database: Database) -> None:
    tx.delete(str(database.id), "DELETE FROM databases WHERE id = ?", database.id)


def from_row(row: sqlite3.Row) -> Database:
    return Database(
        id=row["id"],
        branch_id=row["branch_id"],
        name=row["name"],
        owner_name=row["owner_name"],
        created_at=format_timestamp(row["created_at"]),
        updated_at=format_timestamp(row["updated_at"]),
    )
