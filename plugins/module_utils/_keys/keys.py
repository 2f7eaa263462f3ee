# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists, creates and revokes the API keys of the account (api.md, API key). Keeps P1, P2, P3, P5 and P6."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

from .._bare_key import why_no_key
from .._errors import ClouddbError, InvalidOption, Result, sentence
from .._http.client import Client
from .._http.errors import NotFound, RequestFailed, StatusError, Unauthorized, UnexpectedResponse
from .._http.response import Response
from .._timestamps import timestamp_of
from .scope import ACCOUNT, KeyScope

Key = dict[str, Any]

REVOCATION_FIELDS = ("id", "name", "last_used_at", "last_used_from_addr")
# A key counts as invalid after this many. A part of the service may reject a key for a moment that another has created.
MAX_REJECTIONS = 2
REJECTION_INTERVAL = 1.0
# The response to a key that is limited to a project, for everything else.
OUT_OF_SCOPE = frozenset({403, 404})


class CreatedKey(NamedTuple):
    """A key that this task has created: its C(secret), and its public fields."""

    secret: str
    public: Key

    @property
    def id(self) -> int:
        return int(self.public["id"])

    def __repr__(self) -> str:
        return f"CreatedKey({self.public!r})"  # without the secret


class NamedKeys(NamedTuple):
    """The keys of a scope before the task changes them, and the name that it is about; names are not unique."""

    name: str
    scope: KeyScope
    listed: list[Key]

    @property
    def of_the_name(self) -> list[Key]:
        return [key for key in self.listed if key.get("name") == self.name and self.scope.includes(key)]

    def new_in(self, listed: list[Key]) -> list[Key]:
        """The keys of the name in a later list that were not there before."""
        known_ids = {key["id"] for key in self.listed}
        return [key for key in self._replace(listed=listed).of_the_name if key["id"] not in known_ids]


def list_keys(client: Client, scope: KeyScope, max_rejections: int = 1) -> list[Key]:
    """The active keys of the account or organization, the earliest first, without secrets (api.md, GET /api_keys).

    If the scope is a project, only the keys that are limited to it.
    """
    listed = map(_public, _get(client, scope.path, max_rejections).items(None, id=int))
    keys = {key["id"]: key for key in listed if not scope.project_id or scope.includes(key)}
    return sorted(keys.values(), key=_creation_order)


def _get(client: Client, path: Sequence[str], max_rejections: int) -> Response:
    """The response to GET. Raises Unauthorized once the service has rejected the client's key C(max_rejections) times."""
    for _rejection in range(max_rejections - 1):
        try:
            return client.get(*path)
        except Unauthorized:
            client.clock.sleep(REJECTION_INTERVAL)
    return client.get(*path)


def all_but_latest(keys: Sequence[Key], number: int) -> list[Key]:
    """The keys, of which the latest come last, without the last C(number) of them."""
    return list(keys[: max(0, len(keys) - number)])


def last_use(key: Mapping[str, Any]) -> datetime | None:
    """When the key was last used; None if it never was, or if that is not known, as with a last use before its creation."""
    created_at, last_used_at = timestamp_of(key, "created_at"), timestamp_of(key, "last_used_at")
    return None if last_used_at and created_at and last_used_at < created_at else last_used_at


def own_key_of(client: Client, scope: KeyScope, listed: Sequence[Key], own_key: str) -> Key:
    """The key that the option C(own_key) names by its id or name. Raises InvalidOption unless it is exactly one.

    It is one of those that were C(listed) or, for keys of an organization, another one of it or of the account.
    """

    def named_in(keys: Sequence[Key]) -> list[Key]:
        return [key for key in keys if own_key in (str(key["id"]), key.get("name"))]

    named = named_in(listed)
    if scope.org_id and not named:
        named = named_in([*list_keys(client, KeyScope(scope.org_id)), *list_keys(client, ACCOUNT)])
    if len(named) != 1:
        found = f"{numbered([key['id'] for key in named])} have" if named else "no key has"
        raise InvalidOption(
            "own_key", f"{found} the id or the name '{own_key}'. Set it to the id of the task's own key."
        )
    return named[0]


def _creation_order(key: Key) -> tuple[datetime, int]:
    return timestamp_of(key, "created_at") or datetime.max.replace(tzinfo=timezone.utc), key["id"]


def create_key(client: Client, keys: NamedKeys) -> CreatedKey:
    """Create a key of the name, at most one (api.md, POST /api_keys).

    Raises ClouddbError when the service may have created a key without a usable response; the error names the new keys of
    that name.
    """
    scope = keys.scope
    try:
        response = client.with_secrets().post(*scope.path, body={"key_name": keys.name, **scope.body})
        created = response.object(id=int, key=str)
        client.masker.hide(created["key"])
        if why_no_key(created["key"]):
            raise response.unexpected("the field 'key' cannot be a new secret")
    except RequestFailed as error:
        if not error.may_have_acted:
            raise
        raise _unconfirmed_creation(client, keys, error) from error
    return CreatedKey(created["key"], {"name": keys.name, **client.masker.data(_public(created))})


def _public(key: Key) -> Key:
    return {field: value for field, value in key.items() if field != "key"}


def orphaned_key(
    message: str, key_ids: Iterable[int], cause: ClouddbError, result: Result | None = None
) -> ClouddbError:
    """The error for keys that are active, or may be, although nobody has their secret or they were to be revoked.

    C(key_ids) are the ids that are known, C(cause) is the error of the request that failed.
    """
    text = f"{message} Error: {sentence(cause)}"
    return ClouddbError("orphaned_key", text, {**cause.details, "key_ids": list(key_ids)}, result)


def _unconfirmed_creation(client: Client, keys: NamedKeys, cause: RequestFailed) -> ClouddbError:
    problem = (
        f"The request to create API key '{keys.name}' got no usable response. "
        "It was not retried, because that could create a second key."
    )
    try:
        new_ids = [key["id"] for key in keys.new_in(list_keys(client, keys.scope))]
    except RequestFailed as error:
        outcome = (
            f"The keys could not be listed to find out whether it created one: {sentence(error)} "
            "List them later, revoke a new key of that name by its id, then run the task again."
        )
        return orphaned_key(f"{problem} {outcome}", [], cause)
    if not new_ids:
        outcome = "The service lists no new key of that name. Run the task again."
    else:
        outcome = (
            f"{numbered(new_ids)} of that name {'is' if len(new_ids) == 1 else 'are'} new. Unless another host created it, nobody "
            "has the secret. Revoke such a key with state=absent and id, then run the task again."
        )
    return orphaned_key(f"{problem} {outcome}", new_ids, cause)


def with_new_key(client: Client, created: CreatedKey, scope: KeyScope) -> Client:
    """A client that authenticates with the new key, which is to replace others. Raises UnexpectedResponse if the service rejects it.

    A key that is limited to a project can't replace others, so the client stays.
    """
    own_client = client.with_api_key(created.secret)
    try:
        _get(own_client, scope.path_to_verify, MAX_REJECTIONS)
    except Unauthorized as error:
        problem = f"The service rejects key {created.id}, which it has just created, so that it replaced no other key."
        raise UnexpectedResponse(f"{problem} Run the task again.", error.request, error.attempts) from error
    return client if scope.project_id else own_client


def choose_key(client: Client, keys: NamedKeys, created: CreatedKey) -> tuple[Key, list[str]]:
    """The key of that name that is kept, and warnings: the earliest of the new ones.

    When many hosts create the same key at once, all of them come to the same result. It is the one that this task created
    when the keys can't be listed. Raises ClouddbError.
    """
    _require_name(created.public, keys.name)
    try:
        listed = list_keys(client, keys.scope, MAX_REJECTIONS)
    except RequestFailed as error:
        _require_scope(created.public, keys.scope)
        warning = (
            f"Key {created.id} was created, but the keys could not be listed again: another host may have created a key "
            f"named '{keys.name}' at the same time. Check with api_key_info that there is only one. Error: {sentence(error)}"
        )
        return created.public, [warning]
    # A list may be older than the key; where it has the key, it has more fields of it.
    ours = next((key for key in listed if key["id"] == created.id), created.public)
    _require_name(ours, keys.name)
    _require_scope(ours, keys.scope)
    return min([*keys.new_in(listed), ours], key=_creation_order), []


def _require_name(key: Key, name: str) -> None:
    stored = key.get("name")
    if stored not in (None, name):
        raise ClouddbError(
            "name_changed",
            f"The service has changed the name of the new key {key['id']} from '{name}' to '{stored}'. Later runs would not "
            "find the key and would create another one each time, so it is not kept. Use the name as the service stores it: "
            f"'{stored}'.",
            {"key_ids": [key["id"]], "stored_name": stored},
        )


def _require_scope(key: Key, scope: KeyScope) -> None:
    """Raise ClouddbError for a new key that can access more than was asked for."""
    if not scope.includes(key):
        raise ClouddbError(
            "wrong_scope",
            f"The new key {key['id']} is not limited to project {scope.project_id}, so it is not kept. Check whether the service "
            "supports keys of a project.",
            {"key_ids": [key["id"]]},
        )


def revoke_key(client: Client, key: Key, scope: KeyScope) -> Key | None:
    """Revoke a key (api.md, DELETE /api_keys/{key_id}); the revocation result, None when it was already gone."""
    try:
        response = client.delete(*scope.path, key["id"])
        revocation = response.object(id=int, revoked=bool)
        if revocation["id"] != key["id"]:
            raise response.unexpected(f"it is about key {revocation['id']}")
        if not revocation["revoked"]:
            raise response.unexpected("it says that the key is not revoked")
        return revocation
    except NotFound as error:
        # An earlier attempt has acted, and its response was lost.
        return as_revoked(key) if error.may_have_acted else None
    except RequestFailed as error:
        if error.may_have_acted and _is_gone(client, key, scope, error):
            return as_revoked(key)
        raise


def as_revoked(key: Key) -> Key:
    """The revocation result of a key, as the service sends it (api.md, API key (revocation result)), where its own is missing."""
    return {**{field: key[field] for field in REVOCATION_FIELDS if field in key}, "revoked": True}


def _is_gone(client: Client, key: Key, scope: KeyScope, cause: RequestFailed) -> bool:
    """Whether the service lists its keys, and this one is not among them.

    Raises Unauthorized if the service rejects the client's own key, which may be the one that was to be revoked.
    """
    try:
        return all(other["id"] != key["id"] for other in list_keys(client, scope, MAX_REJECTIONS))
    except Unauthorized as error:
        error.may_have_acted = True
        raise error from cause
    except RequestFailed:
        return False


def revoke_created_key(client: Client, created: CreatedKey, reason: str, scope: KeyScope) -> None:
    """Revoke the key that this task has created. Raises ClouddbError, with the reason, when that fails."""
    try:
        revoke_key(client, created.public, scope)
    except RequestFailed as error:
        raise orphaned_key(
            f"{sentence(reason)} This task had created key {created.id}. {not_revoked([created.id], error)} "
            f"Revoke it with state=absent and id={created.id}.",
            [created.id],
            error,
        ) from error


def not_revoked(key_ids: Sequence[int], error: RequestFailed) -> str:
    """The sentences about keys that are left after revoking the first of them has failed."""
    if error.may_have_acted:
        return f"{numbered(key_ids)} may still be valid, because the service did not confirm the revocation."
    return f"{numbered(key_ids)} could not be revoked."


def retry_advice(error: ClouddbError) -> str:
    """The sentences that say how to repeat a task whose revocation has failed."""
    if isinstance(error, Unauthorized):
        return "The service no longer accepts the task's own key. Set api_key to another key and run the task again."
    return "Run the task again."


def is_accepted(client: Client, scope: KeyScope, max_rejections: int = MAX_REJECTIONS) -> bool:
    """Whether the service accepts the key of this client for what the scope is about.

    It does not if it rejects the key C(max_rejections) times.
    """
    try:
        _get(client, scope.path_to_verify, max_rejections)
    except Unauthorized:
        return False
    return True


def is_valid_secret(client: Client, scope: KeyScope) -> bool:
    """Whether the key of this client is accepted, and is of this scope. Raises ClouddbError for a key that can access more than its project."""
    if not is_accepted(client, scope):
        return False
    if scope.project_id:
        try:
            client.get(*scope.path)
        except StatusError as error:
            if error.status in OUT_OF_SCOPE:
                return True
            raise
        raise ClouddbError(
            "other_key",
            f"The key can access more than project {scope.project_id}. Nothing was changed.",
            {"key_ids": []},
        )
    return True


def numbered(key_ids: Sequence[int]) -> str:
    """The beginning of a sentence about these keys: C(Key 12), C(Keys 12 and 13), C(Keys 12, 13 and 14)."""
    *others, last = map(str, key_ids)
    return f"Keys {', '.join(others)} and {last}" if others else f"Key {last}"
