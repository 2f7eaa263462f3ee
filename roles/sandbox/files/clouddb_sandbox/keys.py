# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""API keys (api.md, "API key" and "Authentication"). Only their SHA-256 hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import string

from fastapi import HTTPException

from .clock import format_timestamp
from .response_models import ApiKey, ApiKeyCreateResponse, ApiKeyRevokeResponse
from .store import Transaction

SECRET_CHARACTERS = string.ascii_lowercase + string.digits
SECRET_LENGTH = 64


def generate_secret() -> str:
    return "".join(secrets.choice(SECRET_CHARACTERS) for _position in range(SECRET_LENGTH))


def hash_secret(secret: str) -> bytes:
    # An unsalted hash is sufficient: a secret of 64 random characters cannot be guessed.
    return hashlib.sha256(secret.encode()).digest()


def create(
    tx: Transaction, name: str, secret: str | None = None, created_at: int | None = None
) -> ApiKeyCreateResponse:
    secret = secret or generate_secret()
    created_at = tx.unique_time() if created_at is None else created_at
    inserted = tx.db.execute(
        "INSERT INTO api_keys (name, hash, created_at) VALUES (?, ?, ?)", (name, hash_secret(secret), created_at)
    )
    assert inserted.lastrowid is not None
    return ApiKeyCreateResponse(id=inserted.lastrowid, key=secret, name=name, created_at=format_timestamp(created_at))


def create_if_missing(tx: Transaction, name: str, secret: str) -> None:
    """Create a key with this secret unless there is or was one: a revoked key stays revoked."""
    if not tx.db.execute("SELECT 1 FROM api_keys WHERE hash = ?", (hash_secret(secret),)).fetchone():
        create(tx, name, secret)


def authenticate(tx: Transaction, secret: str, address: str) -> bool:
    """Return whether the secret is that of an active key, and record the key's use."""
    presented = hash_secret(secret)
    row = tx.db.execute("SELECT id, hash FROM api_keys WHERE hash = ? AND revoked_at IS NULL", (presented,)).fetchone()
    # The index only finds the row; a constant-time comparison decides.
    if row is None or not hmac.compare_digest(row["hash"], presented):
        return False
    record_use(tx, row["id"], tx.unique_time(), address)
    return True


def record_use(tx: Transaction, key_id: int, used_at: int, address: str) -> None:
    tx.db.execute(
        "UPDATE api_keys SET last_used_at = ?, last_used_from_addr = ? WHERE id = ?", (used_at, address, key_id)
    )


def list_active(tx: Transaction) -> list[ApiKey]:
    rows = tx.db.execute("SELECT * FROM api_keys WHERE revoked_at IS NULL ORDER BY id")
    return [
        ApiKey(
            id=row["id"],
            name=row["name"],
            created_at=format_timestamp(row["created_at"]),
            last_used_at=format_last_use(row["last_used_at"]),
            last_used_from_addr=row["last_used_from_addr"],
        )
        for row in rows
    ]


def revoke(tx: Transaction, key_id: int) -> ApiKeyRevokeResponse:
    """Revoke an active key. Raises a 404 error if there is none with this id."""
    row = tx.db.execute("SELECT * FROM api_keys WHERE id = ? AND revoked_at IS NULL", (key_id,)).fetchone()
    if row is None:
        raise HTTPException(404, f"API key {key_id} not found")
    tx.db.execute("UPDATE api_keys SET revoked_at = ? WHERE id = ?", (tx.unique_time(), key_id))
    return ApiKeyRevokeResponse(
        id=row["id"],
        name=row["name"],
        created_at=format_timestamp(row["created_at"]),
        revoked=True,
        last_used_at=format_last_use(row["last_used_at"]),
        last_used_from_addr=row["last_used_from_addr"],
    )


def format_last_use(last_used_at: int | None) -> str | None:
    return None if last_used_at is None else format_timestamp(last_used_at)
