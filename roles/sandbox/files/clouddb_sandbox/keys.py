# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""API keys (api.md, "API key" and "Authentication"). Only their SHA-256 hashes are stored."""

from __future__ import annotations

import hashlib
import secrets
import string
from typing import NamedTuple

from fastapi import HTTPException

from .clock import format_optional, format_timestamp
from .response_models import OrgApiKey, OrgApiKeyCreateResponse, OrgApiKeyRevokeResponse
from .store import Transaction

SECRET_CHARACTERS = string.ascii_lowercase + string.digits
SECRET_LENGTH = 64


class Scope(NamedTuple):
    """The organization of a key, or None for a personal key; and the only project that it can access, if it is limited to one."""

    org_id: str | None = None
    project_id: str | None = None


PERSONAL = Scope()


def generate_secret() -> str:
    return "".join(secrets.choice(SECRET_CHARACTERS) for _position in range(SECRET_LENGTH))


def hash_secret(secret: str) -> bytes:
    # An unsalted hash is sufficient: a secret of 64 random characters cannot be guessed.
    return hashlib.sha256(secret.encode()).digest()


def create(
    tx: Transaction, name: str, secret: str | None = None, created_at: int | None = None, scope: Scope = PERSONAL
) -> OrgApiKeyCreateResponse:
    secret = secret or generate_secret()
    created_at = tx.unique_time() if created_at is None else created_at
    inserted = tx.db.execute(
        "INSERT INTO api_keys (name, hash, created_at, org_id, project_id) VALUES (?, ?, ?, ?, ?)",
        (name, hash_secret(secret), created_at, *scope),
    )
    assert inserted.lastrowid is not None
    return OrgApiKeyCreateResponse(
        id=inserted.lastrowid,
        key=secret,
        name=name,
        created_at=format_timestamp(created_at),
        project_id=scope.project_id,
    )


def create_if_missing(tx: Transaction, name: str, secret: str) -> None:
    """Create a key with this secret unless there is or was one: a revoked key stays revoked."""
    if not tx.db.execute("SELECT 1 FROM api_keys WHERE hash = ?", (hash_secret(secret),)).fetchone():
        create(tx, name, secret)


def authenticate(tx: Transaction, secret: str, address: str) -> Scope | None:
    """Return the scope of the active key with this secret, if there is one, and record the key's use."""
    row = tx.db.execute(
        "SELECT * FROM api_keys WHERE hash = ? AND revoked_at IS NULL", (hash_secret(secret),)
    ).fetchone()
    if row is None:
        return None
    record_use(tx, row["id"], tx.unique_time(), address)
    return Scope(row["org_id"], row["project_id"])


def record_use(tx: Transaction, key_id: int, used_at: int, address: str) -> None:
    tx.db.execute(
        "UPDATE api_keys SET last_used_at = ?, last_used_from_addr = ? WHERE id = ?", (used_at, address, key_id)
    )


def list_active(tx: Transaction, org_id: str | None = None) -> list[OrgApiKey]:
    """Return the keys of the organization, or the personal ones."""
    rows = tx.db.execute("SELECT * FROM api_keys WHERE org_id IS ? AND revoked_at IS NULL ORDER BY id", (org_id,))
    return [
        OrgApiKey(
            id=row["id"],
            name=row["name"],
            created_at=format_timestamp(row["created_at"]),
            last_used_at=format_optional(row["last_used_at"]),
            last_used_from_addr=row["last_used_from_addr"],
            project_id=row["project_id"],
        )
        for row in rows
    ]


def revoke(tx: Transaction, key_id: int, org_id: str | None = None) -> OrgApiKeyRevokeResponse:
    """Revoke an active key of the organization, or a personal one. Raises a 404 error if there is none with this id."""
    row = tx.db.execute(
        "SELECT * FROM api_keys WHERE id = ? AND org_id IS ? AND revoked_at IS NULL", (key_id, org_id)
    ).fetchone()
    if row is None:
        raise HTTPException(404, f"API key {key_id} not found")
    tx.db.execute("UPDATE api_keys SET revoked_at = ? WHERE id = ?", (tx.unique_time(), key_id))
    return OrgApiKeyRevokeResponse(
        id=row["id"],
        name=row["name"],
        created_at=format_timestamp(row["created_at"]),
        revoked=True,
        last_used_at=format_optional(row["last_used_at"]),
        last_used_from_addr=row["last_used_from_addr"],
        project_id=row["project_id"],
    )
