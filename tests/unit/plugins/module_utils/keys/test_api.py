# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys whose fields are not all there, and lists that do not show a new key yet."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import StatusError, UnexpectedResponse
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._keys.api import (
    CreatedKey,
    first_created,
    is_accepted,
    keys_named,
    list_keys,
    revoke_key,
)
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply

FIRST, SECOND = "2026-11-21T08:00:00.000001Z", "2026-11-21T08:00:00.000002Z"


def key(key_id: int, created_at: Any = FIRST, name: Any = "deploy") -> dict[str, Any]:
    return {"id": key_id, "name": name, "created_at": created_at}


def ours(key_id: int, created_at: Any = FIRST) -> CreatedKey:
    return CreatedKey("secret", key(key_id, created_at))


def test_keys_are_in_the_order_of_their_creation_then_of_their_ids(serve: Serve) -> None:
    response = reply(
        [
            key(9, SECOND),
            key(8),
            key(3, None),
            key(7),
            key(2, "soon"),
            {"id": 1, "name": "deploy"},
            key(4, 1637000000),
            key(6, name="ci"),
            {"id": 5},
        ]
    )
    assert [found["id"] for found in keys_named(serve(response).client, "deploy")] == [7, 8, 9, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "body", [{}, {"api_keys": []}, [7], [{"name": "deploy"}], [{"id": "7"}], [{"id": None}]], ids=str
)
def test_a_key_list_of_another_shape_is_an_error(serve: Serve, body: Any) -> None:
    with pytest.raises(UnexpectedResponse, match="GET /api_keys"):
        list_keys(serve(reply(body)).client)


@pytest.mark.parametrize(
    ("listed", "created", "stays"),
    [
        ([key(7), key(8)], ours(7), 7),
        ([key(7), key(8)], ours(8), 7),
        ([key(7, SECOND), key(8, FIRST)], ours(7, SECOND), 8),
        ([key(8, SECOND)], ours(7), 7),
        ([], ours(7), 7),
        ([key(7)], ours(8, SECOND), 7),
        ([key(7, None), key(8, FIRST)], ours(7, None), 8),
        ([key(1), key(7)], ours(7), 7),
        ([key(2, name="ci"), key(7)], ours(7), 7),
    ],
    ids=[
        "ours is earlier by its id",
        "ours is later by its id",
        "ours is later by its time",
        "ours is not listed yet, and earlier",
        "nothing is listed yet",
        "ours is not listed yet, and later",
        "ours has no time",
        "a key known from before does not count",
        "a key of another name does not count",
    ],
)
def test_the_earliest_new_key_stays(
    serve: Serve, listed: list[dict[str, Any]], created: CreatedKey, stays: int
) -> None:
    assert first_created(serve(reply(listed)).client, "deploy", created, known_ids=[1])["id"] == stays


def test_of_a_listed_key_the_list_tells_more(serve: Serve) -> None:
    listed = {**key(7), "last_used_at": None, "scope": "all"}
    assert first_created(serve(reply([listed])).client, "deploy", ours(7), []) == listed


def test_a_revocation_keeps_all_fields_that_the_service_sent(serve: Serve) -> None:
    revoked = {"id": 7, "revoked": True, "by": {"id": 3}}
    served = serve(reply(revoked))
    assert revoke_key(served.client, key(7)) == revoked
    assert served.targets == ["/api_keys/7"]


def test_a_key_that_was_gone_has_no_revocation(serve: Serve) -> None:
    assert revoke_key(serve(reply({"message": "not found"}, 404)).client, key(7)) is None


def test_a_key_that_is_gone_at_the_second_try_was_revoked_by_the_first(serve: Serve) -> None:
    assert revoke_key(serve(reply({}, 503), reply({"message": "not found"}, 404)).client, key(7)) == {
        **key(7),
        "revoked": True,
    }


@pytest.mark.parametrize("body", [[], {}, {"id": "7"}], ids=str)
def test_a_revocation_of_another_shape_is_an_error(serve: Serve, body: Any) -> None:
    with pytest.raises(UnexpectedResponse, match="DELETE /api_keys/7"):
        revoke_key(serve(reply(body)).client, key(7))


@pytest.mark.parametrize(("status", "accepted"), [(200, True), (401, False)])
def test_a_secret_is_tried_in_place_of_the_clients_own_key(serve: Serve, status: int, accepted: bool) -> None:
    served = serve(reply([], status))
    assert is_accepted(served.client, "the-secret") is accepted
    assert [request.headers["Authorization"] for request in served.requests] == ["Bearer the-secret"]


@pytest.mark.parametrize("secret", ["", "two words", "line\nline", "Schlüssel", "\x00"], ids=repr)
def test_what_cannot_be_a_key_is_not_sent(client_without_service: Client, secret: str) -> None:
    assert not is_accepted(client_without_service, secret)


def test_a_service_that_refuses_for_another_reason_says_nothing_of_the_secret(serve: Serve) -> None:
    with pytest.raises(StatusError) as error:
        is_accepted(serve(reply({"message": "the-secret is no friend of mine"}, 403)).client, "the-secret")
    assert "the-secret" not in str(error.value)


@pytest.fixture
def client_without_service(serve: Serve) -> Client:
    """The script is empty, so that a request would be answered with 599."""
    return serve().client
