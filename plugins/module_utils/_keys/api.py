# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""API keys of the account: listed, created exactly once, revoked (api.md, API key)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timezone
from typing import Any, NamedTuple

from .._errors import ClouddbError, NotFound, RequestFailed, Unauthorized
from .._http.client import Client
from .._http.connection import is_sendable
from .._timestamps import parse_timestamp

Key = dict[str, Any]


class OrphanedKey(ClouddbError):
    """A key may be or is active that nobody has the secret of, or that should be gone; C(key_ids) names what is known."""

    kind = "orphaned_key"

    def __init__(self, message: str, key_ids: Iterable[int], cause: ClouddbError, result: dict[str, Any] | None = None):
        super().__init__(message, {**cause.details, "key_ids": list(key_ids)}, result)


class CreatedKey(NamedTuple):
    """A key that this task has created: its C(secret), and its public fields."""

    secret: str
    public: Key

    def __repr__(self) -> str:
        return f"CreatedKey({self.public!r})"  # without the secret


def list_keys(client: Client) -> list[Key]:
    """The account's active keys, the earliest first (api.md, GET /api_keys)."""
    return sorted(client.get("api_keys").items(None, id=int), key=_age_order)


def keys_named(client: Client, name: str) -> list[Key]:
    """The active keys of this name, the earliest first; names are not unique."""
    return [key for key in list_keys(client) if key.get("name") == name]


def _age_order(key: Key) -> tuple[datetime, int]:
    try:
        return parse_timestamp(key["created_at"]), key["id"]
    except (KeyError, ValueError, AttributeError):
        return datetime.max.replace(tzinfo=timezone.utc), key["id"]


def create_key(client: Client, name: str, known_ids: Collection[int]) -> CreatedKey:
    """Create a key, at most one (api.md, POST /api_keys).

    C(known_ids) are the keys of that name from before. Raises OrphanedKey when no usable answer came, which names the
    key that may have been created all the same.
    """
    try:
        response = client.post("api_keys", body={"key_name": name})
        created = response.require(response.object(), id=int, key=str)
    except RequestFailed as fault:
        if not fault.may_have_acted:
            raise
        raise _unanswered_creation(client, name, known_ids, fault) from fault
    public = {"name": name, **{field: value for field, value in created.items() if field != "key"}}
    return CreatedKey(created["key"], public)


def _unanswered_creation(client: Client, name: str, known_ids: Collection[int], fault: RequestFailed) -> OrphanedKey:
    problem = (
        f"creating the key '{name}' brought no usable answer ({fault}), and a second try could have made a second key"
    )
    ids: list[int] = []
    try:
        ids = [key["id"] for key in keys_named(client, name) if key["id"] not in known_ids]
    except RequestFailed as list_fault:
        way_out = f"nor could the keys be listed again ({list_fault}): look for a new key of that name and revoke it by its id"
    else:
        way_out = "no new key of that name is to be seen: run the task again"
        if ids:
            found = "is a new key of that name; unless another host made it, nobody has its secret: revoke it"
            if len(ids) > 1:
                found = "are new keys of that name, those of other hosts and perhaps this task's: revoke the one whose secret nobody has,"
            way_out = f"since then there {found} {_by_id(ids)}, then run the task again"
    return OrphanedKey(f"{problem}; {way_out}", ids, fault)


def _by_id(ids: Iterable[int]) -> str:
    return f"with state=absent and id={' or id='.join(str(key_id) for key_id in ids)}"


def first_created(client: Client, name: str, created: CreatedKey, known_ids: Collection[int]) -> Key:
    """Of all keys of that name that are not among C(known_ids), the earliest: the one that stays.

    When many hosts create the same key at once, all of them come to the same result.
    """
    others = [key for key in keys_named(client, name) if key["id"] not in known_ids]
    ours = next((key for key in others if key["id"] == created.public["id"]), created.public)
    return min([*others, ours], key=_age_order)


def revoke_key(client: Client, key: Key) -> Key | None:
    """Revoke a key (api.md, DELETE /api_keys/{key_id}); the revocation result, None when it was gone already."""
    try:
        response = client.delete("api_keys", key["id"])
    except NotFound as gone:
        # A 404 to a repeated DELETE: the first one acted and its answer was lost.
        return {**key, "revoked": True} if gone.attempts > 1 else None
    except RequestFailed as fault:
        if fault.may_have_acted and _is_gone(client, key):
            return {**key, "revoked": True}
        raise
    revocation = response.require(response.object(), id=int)
    if revocation.get("revoked") is False:
        raise response.unexpected("it says that the key is not revoked")
    return revocation


def _is_gone(client: Client, key: Key) -> bool:
    """Whether the key is surely no longer there."""
    try:
        return all(other["id"] != key["id"] for other in list_keys(client))
    except RequestFailed:
        return False


def revoke_unwanted(client: Client, created: CreatedKey, why: str) -> None:
    """Revoke the key that this task has just created. Raises OrphanedKey when that fails too."""
    key_id = created.public["id"]
    try:
        revoke_key(client, created.public)
    except RequestFailed as fault:
        raise OrphanedKey(
            f"{why}, and key {key_id}, made for it, could not be revoked ({fault}): revoke it {_by_id([key_id])}",
            [key_id],
            fault,
        ) from fault


def is_accepted(client: Client, secret: str) -> bool:
    """Whether the service takes this secret as a bearer key."""
    if not is_sendable(secret):
        return False
    try:
        client.with_api_key(secret).get("api_keys")
    except Unauthorized:
        return False
    return True
