# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""API keys (api.md, "API key" and "Authentication"). Only their SHA-256 hashes are stored."""

from __future__ import annotations

import hashlib
import hmac

from . import names
from .clock import timestamp
from .resources import ApiKey, CreatedApiKey, RevokedApiKey
from .store import Transaction


def digest(secret: str) -> bytes:
    # The secrets are 64 random characters, so one plain hash is enough: there is nothing to guess.
    return hashlib.sha256(secret.encode()).digest()


def create(tx: Transaction, name: str, secret: str | None = None, created_at: int | None = None) -> CreatedApiKey:
    secret = secret or names.secret()
    created_at = tx.stamp() if created_at is None else created_at
    added = tx.db.execute(
        "INSERT INTO api_keys (name, hash, created_at) VALUES (?, ?, ?)", (name, digest(secret), created_at)
    )
    assert added.lastrowid is not None
    return CreatedApiKey(id=added.lastrowid, key=secret, name=name, created_at=timestamp(created_at))


def ensure(tx: Transaction, name: str, secret: str) -> None:
    """Add the key unless it was ever there: a revoked key stays revoked."""
    if not tx.db.execute("SELECT 1 FROM api_keys WHERE hash = ?", (digest(secret),)).fetchone():
        create(tx, name, secret)


def use(tx: Transaction, secret: str, address: str) -> bool:
    """Whether this is an active key; if so, note when and from where it was used."""
    presented = digest(secret)
    row = tx.db.execute("SELECT id, hash FROM api_keys WHERE hash = ? AND revoked_at IS NULL", (presented,)).fetchone()
    # The index finds the row; this comparison, which takes the same time for every input, admits it.
    if row is None or not hmac.compare_digest(row["hash"], presented):
        return False
    tx.db.execute(
        "UPDATE api_keys SET last_used_at = ?, last_used_from_addr = ? WHERE id = ?", (tx.stamp(), address, row["id"])
    )
    return True


def active(tx: Transaction) -> list[ApiKey]:
    rows = tx.db.execute("SELECT * FROM api_keys WHERE revoked_at IS NULL ORDER BY id")
    return [
        ApiKey(
            id=row["id"],
            name=row["name"],
            created_at=timestamp(row["created_at"]),
            last_used_at=last_used_at(row["last_used_at"]),
            last_used_from_addr=row["last_used_from_addr"],
        )
        for row in rows
    ]


def revoke(tx: Transaction, key_id: int) -> RevokedApiKey | None:
    """Revoke an active key, for good; None if there is none of that id."""
    row = tx.db.execute("SELECT * FROM api_keys WHERE id = ? AND revoked_at IS NULL", (key_id,)).fetchone()
    if row is None:
        return None
    tx.db.execute("UPDATE api_keys SET revoked_at = ? WHERE id = ?", (tx.stamp(), key_id))
    return RevokedApiKey(
        id=row["id"],
        name=row["name"],
        revoked=True,
        last_used_at=last_used_at(row["last_used_at"]),
        last_used_from_addr=row["last_used_from_addr"],
    )


def last_used_at(moment: int | None) -> str | None:
    return None if moment is None else timestamp(moment)
