# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses about keys: missing fields, lists that are older than a new key, lost revocations, and the check of a secret."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http import errors
from ansible_collections.clouddb.control.plugins.module_utils._keys import keys
from ansible_collections.clouddb.control.plugins.module_utils._keys.scope import ACCOUNT
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import (
    CUT_OFF,
    HANG_UP,
    NOT_NOW,
    Reply,
    reply,
)

FIRST, SECOND = "2026-11-21T08:00:00.000001Z", "2026-11-21T08:00:00.000002Z"
UNCONFIRMED = "may still be valid, because the service did not confirm the revocation."
# A service that does not accept a key says so twice.
REJECTIONS = [reply({}, 401)] * 2
# Without the time of its creation, as the service sends it.
REVOKED = {"id": 7, "name": "deploy", "revoked": True}
NOT_LISTED = "The keys could not be listed to find out whether it created one"
LATER = "List them later, revoke a new key of that name by its id, then run the task again."


def key(key_id: int, created_at: Any = FIRST, name: Any = "deploy") -> dict[str, Any]:
    return {"id": key_id, "name": name, "created_at": created_at}


def ours(key_id: int, created_at: Any = FIRST) -> keys.CreatedKey:
    return keys.CreatedKey("secret", key(key_id, created_at))


def named(*listed: dict[str, Any]) -> keys.NamedKeys:
    return keys.NamedKeys("deploy", ACCOUNT, list(listed))


def test_keys_are_sorted_by_creation_time_then_id(serve: Serve) -> None:
    unknown = [key(3, None), key(2, "soon"), {"id": 1, "name": "deploy"}, key(4, 1637000000), {"id": 5}]
    response = reply([key(9, SECOND), key(8), key(7), key(7), *unknown, key(6, name="ci")])
    assert [found["id"] for found in keys.list_keys(serve(response).client, ACCOUNT)] == [6, 7, 8, 9, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("body", [{"api_keys": []}, [7], [{"name": "deploy"}], [{"id": "7"}]])
def test_malformed_key_list_raises(serve: Serve, body: Any) -> None:
    with pytest.raises(errors.UnexpectedResponse):
        keys.list_keys(serve(reply(body)).client, ACCOUNT)


def test_listed_keys_have_no_secrets(serve: Serve) -> None:
    client = serve(reply([{"id": 1, "name": "deploy", "key": "the-secret"}])).client
    assert keys.list_keys(client, ACCOUNT) == [{"id": 1, "name": "deploy"}]


@pytest.mark.parametrize("fields", [{}, {"name": None}, {"name": "deploy", "scope": "all"}])
def test_created_key(serve: Serve, fields: dict[str, Any]) -> None:
    created = keys.create_key(serve(reply({"id": 1, "key": "new", **fields})).client, named(key(5)))
    assert created == keys.CreatedKey("new", {"name": "deploy", "id": 1, **fields})
    assert "new" not in repr(created)


@pytest.mark.parametrize(
    "body",
    [[], {"id": 6}, {"id": "6", "key": "new"}, *({"id": 6, "key": secret} for secret in ("", "a b", " é", "new\n", 7))],
)
def test_a_creation_result_without_a_new_key_is_unconfirmed(serve: Serve, body: Any) -> None:
    served = serve(reply(body), reply([key(5, name="ci"), key(6)]))
    with pytest.raises(ClouddbError) as error:
        keys.create_key(served.client, named(key(5)))
    assert error.value.details["key_ids"] == [6]
    assert [request.method for request in served.requests] == ["POST", "GET"]


@pytest.mark.parametrize(
    "listed, outcome, key_ids",
    [
        (reply([key(5)]), "The service lists no new key of that name. Run the task again.", []),
        (reply([key(5), key(6), key(7, name="ci")]), "Key 6 of that name is new. Unless", [6]),
        (reply([key(6), key(7)]), "Keys 6 and 7 of that name are new. Unless", [6, 7]),
        (reply({"message": "no"}, 403), f"{NOT_LISTED}: GET /api_keys returned 403 Forbidden: no. {LATER}", []),
    ],
)
def test_an_unconfirmed_creation_names_the_new_keys(
    serve: Serve, listed: Reply, outcome: str, key_ids: list[int]
) -> None:
    with pytest.raises(ClouddbError) as error:
        keys.create_key(serve(reply({}, 500), listed).client, named(key(5)))
    assert outcome in str(error.value)
    assert error.value.details["key_ids"] == key_ids


@pytest.mark.parametrize(
    "listed, created, kept",
    [
        ([key(7), key(8)], ours(8), 7),
        ([key(7, SECOND), key(8, FIRST)], ours(7, SECOND), 8),
        ([], ours(7), 7),
        ([key(7)], ours(8, SECOND), 7),
        ([key(7, None), key(8, FIRST)], ours(7, None), 8),
        ([key(1), key(2, name="ci"), key(7)], ours(7), 7),
    ],
)
def test_the_earliest_new_key_is_kept(serve: Serve, listed: list[Any], created: keys.CreatedKey, kept: int) -> None:
    chosen, warnings = keys.choose_key(serve(reply(listed)).client, named(key(1)), created)
    assert (chosen["id"], warnings) == (kept, [])


@pytest.mark.parametrize("shown, lists", [(None, [[key(6), key(7, name="ci")]]), ("ci", [])])
def test_new_key_with_another_name(serve: Serve, shown: str | None, lists: list[list[dict[str, Any]]]) -> None:
    """Services lower-case names: https://github.com/hashicorp/terraform-provider-aws/issues/8432"""
    created = keys.CreatedKey("secret", key(7, name=shown))
    with pytest.raises(ClouddbError) as error:
        keys.choose_key(serve(*map(reply, lists)).client, named(), created)
    assert (error.value.kind, error.value.details) == ("name_changed", {"key_ids": [7], "stored_name": "ci"})


def test_revocation_result_keeps_unknown_fields(serve: Serve) -> None:
    revoked = {"id": 7, "revoked": True, "by": {"id": 3}}
    served = serve(reply(revoked))
    assert (keys.revoke_key(served.client, key(7), ACCOUNT), served.targets) == (revoked, ["/api_keys/7"])


@pytest.mark.parametrize(
    "replies, revocation",
    [
        ([reply({}, 404)], None),
        ([NOT_NOW, reply({}, 404)], None),
        *(([*sent, reply({}, 404)], REVOKED) for sent in ([HANG_UP, NOT_NOW], [CUT_OFF], [reply({}, 500)])),
        # Without a usable response, the list says it.
        ([reply({"id": "7"}), reply([key(8)])], REVOKED),
    ],
)
def test_a_gone_key_was_revoked_by_an_attempt_that_may_have_acted(serve: Serve, replies: Any, revocation: Any) -> None:
    assert keys.revoke_key(serve(*replies).client, key(7), ACCOUNT) == revocation


@pytest.mark.parametrize(
    "body", [[], {"id": 7}, {"id": 8, "revoked": True}, {"id": 7, "revoked": 1}, {"id": 7, "revoked": False}]
)
def test_malformed_revocation_result_of_a_listed_key_raises(serve: Serve, body: Any) -> None:
    with pytest.raises(errors.UnexpectedResponse) as error:
        keys.revoke_key(serve(reply(body), reply([key(7)])).client, key(7), ACCOUNT)
    assert (error.value.details["method"], error.value.details["path"]) == ("DELETE", "/api_keys/7")


@pytest.mark.parametrize(
    "replies, problem",
    [
        # The service refused all attempts, or all but the first.
        ([NOT_NOW, reply({}, 401)], "could not be revoked."),
        ([HANG_UP, NOT_NOW], UNCONFIRMED),
        # The service rejects the key of the client, which may be the one that was revoked: this says nothing.
        *(
            ([*replies, *REJECTIONS], UNCONFIRMED)
            for replies in ([HANG_UP, reply({}, 401)], [HANG_UP] * 2, [reply([])])
        ),
        # The service still accepts the key of the client, or its list fails.
        *(([HANG_UP, reply({}, 401), listed], UNCONFIRMED) for listed in (reply([key(7)]), reply({}, 403))),
    ],
)
def test_a_revocation_that_failed_or_may_have_failed(serve: Serve, replies: list[Reply], problem: str) -> None:
    with pytest.raises(errors.RequestFailed) as error:
        keys.revoke_key(serve(*replies, api_retries=1).client, key(7), ACCOUNT)
    assert keys.not_revoked([7], error.value) == f"Key 7 {problem}"
    needs_other_key = isinstance(error.value, errors.Unauthorized)
    assert ("Set api_key to another key" in keys.retry_advice(error.value)) is needs_other_key


@pytest.mark.parametrize(
    "replies, valid, pauses",
    [([reply([])], True, []), (REJECTIONS, False, [1.0]), ([reply({}, 401), reply([])], True, [1.0])],
)
def test_a_secret_is_checked_by_its_own_requests(serve: Serve, replies: list[Reply], valid: bool, pauses: Any) -> None:
    """A part of the service may not know a new key yet: https://github.com/FusionAuth/fusionauth-issues/issues/1875"""
    served = serve(*replies)
    assert keys.is_valid_secret(served.client.with_api_key("the-secret"), ACCOUNT) is valid
    assert [request.headers["Authorization"] for request in served.requests] == ["Bearer the-secret"] * len(replies)
    assert served.clock.pauses == pauses


@pytest.mark.parametrize("secret", ["", "two words", "line\nline", "Schlüssel"], ids=repr)
def test_secret_that_cannot_be_a_header_is_not_sent(serve: Serve, secret: str) -> None:
    """Nor does it count as one that the service rejects."""
    served = serve()
    with pytest.raises(InvalidOption, match="^key: the value must be a key and nothing else, but it "):
        keys.is_valid_secret(served.client.with_api_key(secret), ACCOUNT)
    assert served.requests == []


def test_other_errors_leave_the_validity_of_the_secret_open(serve: Serve) -> None:
    client = serve(reply({"message": "the-secret may not do this"}, 403)).client
    with pytest.raises(errors.StatusError) as error:
        keys.is_valid_secret(client.with_api_key("the-secret"), ACCOUNT)
    assert "the-secret" not in str(error.value)
