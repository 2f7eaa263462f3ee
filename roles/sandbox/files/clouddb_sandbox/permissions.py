# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may use what: the members of organizations, and the email addresses that a project is shared with."""

from __future__ import annotations

import random
import sqlite3

from fastapi import HTTPException

from . import identifiers
from .clock import format_timestamp
from .response_models import Member, MemberUser, MemberWithUser, ProjectPermission, User
from .store import Transaction

ADMIN = "admin"


def insert_member(tx: Transaction, org_id: str, email: str, role: str, rng: random.Random) -> None:
    row = (identifiers.operation_id(rng), identifiers.operation_id(rng), org_id, email, role, tx.now)
    tx.db.execute("INSERT INTO members (id, user_id, org_id, email, role, joined_at) VALUES (?, ?, ?, ?, ?, ?)", row)


def insert_admins(tx: Transaction, organizations: list[str], rng: random.Random) -> None:
    """Make the user of the account an admin of its organizations."""
    user = User()
    for org_id in organizations:
        insert_member(tx, org_id, user.email, ADMIN, rng)
    tx.db.execute("UPDATE members SET user_id = ? WHERE email = ?", (user.id, user.email))


def list_members(tx: Transaction, org_id: str) -> list[MemberWithUser]:
    rows = tx.db.execute("SELECT * FROM members WHERE org_id = ? ORDER BY joined_at, id", (org_id,))
    return [MemberWithUser(member=from_row(row), user=MemberUser(email=row["email"])) for row in rows]


def get_member(tx: Transaction, org_id: str, member_id: str) -> Member:
    """Return the member. Raises a 404 error if the organization has none of this id."""
    row = tx.db.execute("SELECT * FROM members WHERE org_id = ? AND id = ?", (org_id, member_id)).fetchone()
    if row is None:
        raise HTTPException(404, f"member {member_id} not found in organization {org_id}")
    return from_row(row)


def set_role(tx: Transaction, member: Member, role: str) -> Member:
    tx.db.execute("UPDATE members SET role = ? WHERE id = ?", (role, member.id))
    return member.model_copy(update={"role": role})


def remove_member(tx: Transaction, member: Member) -> None:
    """Remove a member. Raises a 422 error if it is the last admin."""
    query = "SELECT count(*) FROM members WHERE org_id = ? AND role = ? AND id != ?"
    (others,) = tx.db.execute(query, (member.org_id, ADMIN, member.id)).fetchone()
    if member.role == ADMIN and not others:
        raise HTTPException(422, "the last admin of an organization cannot be removed")
    tx.db.execute("DELETE FROM members WHERE id = ?", (member.id,))


def from_row(row: sqlite3.Row) -> Member:
    fields = ("id", "user_id", "org_id", "role")
    return Member(**{name: row[name] for name in fields}, joined_at=format_timestamp(row["joined_at"]))


def list_permissions(tx: Transaction, project_id: str) -> list[ProjectPermission]:
    rows = tx.db.execute("SELECT * FROM permissions WHERE project_id = ? ORDER BY granted_at, id", (project_id,))
    return [permission_from(row) for row in rows]


def grant(tx: Transaction, project_id: str, email: str) -> ProjectPermission:
    """Share a project with an email address, unless it is shared with it."""
    granted = [found for found in list_permissions(tx, project_id) if found.granted_to_email == email]
    if granted:
        return granted[0]
    row = (identifiers.operation_id(), project_id, email, tx.unique_time())
    tx.db.execute("INSERT INTO permissions (id, project_id, email, granted_at) VALUES (?, ?, ?, ?)", row)
    return next(found for found in list_permissions(tx, project_id) if found.id == row[0])


def revoke(tx: Transaction, project_id: str, permission_id: str) -> ProjectPermission:
    """End a permission. Raises a 404 error if the project has none of this id."""
    permission = next((each for each in list_permissions(tx, project_id) if each.id == permission_id), None)
    if permission is None:
        raise HTTPException(404, f"permission {permission_id} not found in project {project_id}")
    tx.db.execute("DELETE FROM permissions WHERE id = ?", (permission_id,))
    return permission.model_copy(update={"revoked_at": format_timestamp(tx.unique_time())})


def permission_from(row: sqlite3.Row) -> ProjectPermission:
    return ProjectPermission(
        id=row["id"], granted_to_email=row["email"], granted_at=format_timestamp(row["granted_at"])
    )
