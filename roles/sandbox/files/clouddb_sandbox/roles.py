# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles of a branch: the users of its databases. Their passwords can be revealed again."""

from __future__ import annotations

import secrets
import sqlite3

from fastapi import HTTPException

from .clock import format_timestamp
from .response_models import Role, RoleWithPassword
from .responses import unique_name
from .rules import MAX_ROLE_NAME_BYTES, PROTECTED_ROLE_NAMES, PROTECTED_ROLE_PREFIX
from .store import Transaction


def generate_password() -> str:
    return secrets.token_urlsafe(18)


def insert(tx: Transaction, branch_id: str, name: str, created_at: int | None = None) -> RoleWithPassword:
    """Insert a role with a random password. Raises a 409 error if the name exists, and a 422 error if no role may have it."""
    if name in PROTECTED_ROLE_NAMES or name.startswith(PROTECTED_ROLE_PREFIX):
        raise HTTPException(422, f"the role name {name} is protected")
    if len(name.encode()) > MAX_ROLE_NAME_BYTES:
        raise HTTPException(422, f"a role name cannot exceed {MAX_ROLE_NAME_BYTES} bytes")
    created_at = created_at or tx.unique_time()
    with unique_name(f"branch {branch_id}", "role", name):
        tx.db.execute(
            "INSERT INTO roles (branch_id, name, password, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
            (branch_id, name, generate_password(), created_at, created_at),
        )
    return get(tx, branch_id, name)


def list_all(tx: Transaction, branch_id: str) -> list[Role]:
    rows = tx.db.execute("SELECT * FROM roles WHERE branch_id = ? ORDER BY seq", (branch_id,))
    return [from_row(row) for row in rows]


def find(tx: Transaction, branch_id: str, name: str) -> RoleWithPassword | None:
    row = tx.db.execute("SELECT * FROM roles WHERE branch_id = ? AND name = ?", (branch_id, name)).fetchone()
    return RoleWithPassword(**from_row(row).model_dump(), password=row["password"]) if row else None


def get(tx: Transaction, branch_id: str, name: str) -> RoleWithPassword:
    """Return the role. Raises a 404 error if the branch has none of this name."""
    role = find(tx, branch_id, name)
    if role is None:
        raise HTTPException(404, f"role {name} not found on branch {branch_id}")
    return role


def reset_password(tx: Transaction, role: Role) -> RoleWithPassword:
    """Replace the role's password by a new random one. Roles of other branches keep theirs."""
    set_password(tx, role, generate_password())
    return get(tx, role.branch_id, role.name)


def set_password(tx: Transaction, role: Role, password: str) -> None:
    """Change the password of the branch's role of this name, if it has one."""
    tx.db.execute(
        "UPDATE roles SET password = ?, updated_at = ? WHERE branch_id = ? AND name = ?",
        (password, tx.unique_time(), role.branch_id, role.name),
    )


def delete(tx: Transaction, role: Role) -> None:
    """Delete a role. Raises a 422 error if it owns a database."""
    rows = tx.db.execute(
        "SELECT name FROM databases WHERE branch_id = ? AND owner_name = ?", (role.branch_id, role.name)
    )
    if owned := [row["name"] for row in rows]:
        raise HTTPException(422, f"cannot delete role {role.name}: it owns {', '.join(owned)}")
    tx.delete(role.name, "DELETE FROM roles WHERE branch_id = ? AND name = ?", role.branch_id, role.name)


def from_row(row: sqlite3.Row) -> Role:
    return Role(
        branch_id=row["branch_id"],
        name=row["name"],
        protected=False,
        created_at=format_timestamp(row["created_at"]),
        updated_at=format_timestamp(row["updated_at"]),
    )
