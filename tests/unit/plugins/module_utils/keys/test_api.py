# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys with missing fields, lists that are older than a new key, revocations, and the check of a secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    RequestFailed,
    StatusError,
    Unauthorized,
    UnexpectedResponse,
)
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._keys.api import (
    CreatedKey,
    NameChanged,
    OrphanedKey,
    create_key,
    earliest_new_key,
    is_valid_secret,
    keys_named,
    list_keys,
    not_revoked,
    numbered,
    require_accepted,
    retry_advice,
    revoke_key,
    roll_back,
)
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import API_KEY, Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import HANG_UP, Reply, reply

FIRST, SECOND = "2026-11-21T08:00:00.000001Z", "2026-11-21T08:00:00.000002Z"


def key(key_id: int, created_at: Any = FIRST, name: Any = "deploy") -> dict[str, Any]:
    return {"id": key_id, "name": name, "created_at": created_at}


# A service that does not accept a key says so twice.
REJECTIONS = [reply({}, 401)] * 2

# Without the time of its creation, as the service sends it.
REVOKED = {"id": 7, "name": "deploy", "revoked": True}


def ours(key_id: int, created_at: Any = FIRST) -> CreatedKey:
    return CreatedKey("secret", key(key_id, created_at))


def test_keys_are_sorted_by_creation_time_then_id(serve: Serve) -> None:
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


@pytest.mark.parametrize("positions", [(0, 1, 2, 3), (3, 2, 1, 0)])
def test_key_that_is_listed_more_than_once_counts_once(serve: Serve, positions: tuple[int, ...]) -> None:
    """With its latest use."""
    items = [key(7), key(7) | {"last_used_at": SECOND}, key(7) | {"last_used_at": FIRST}, key(8)]
    listed = list_keys(serve(reply([items[position] for position in positions])).client)
    assert listed == [items[1], items[3]]


@pytest.mark.parametrize("body", [{}, {"api_keys": []}, [7], [{"name": "deploy"}], [{"id": "7"}], [{"id": None}]])
def test_malformed_key_list_raises(serve: Serve, body: Any) -> None:
    with pytest.raises(UnexpectedResponse, match="GET /api_keys"):
        list_keys(serve(reply(body)).client)


@pytest.mark.parametrize(
    "listed, created, earliest",
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
)
def test_earliest_new_key(serve: Serve, listed: list[dict[str, Any]], created: CreatedKey, earliest: int) -> None:
    assert earliest_new_key(serve(reply(listed)).client, "deploy", created, known_ids=[1])["id"] == earliest


@pytest.mark.parametrize(
    "shown, lists",
    [
        ("deploy", [[key(6), key(7, name="ci")]]),
        (None, [[key(6), key(7, name="ci")]]),
        ("ci", []),
    ],
)
def test_new_key_with_another_name(serve: Serve, shown: str | None, lists: list[list[dict[str, Any]]]) -> None:
    """Services lower-case names, and then every run creates the object again, or never finds it.

    https://github.com/hashicorp/terraform-provider-aws/issues/8432
    https://github.com/hashicorp/terraform-provider-azurerm/pull/3695
    """
    created = CreatedKey("secret", key(7, name=shown))
    with pytest.raises(NameChanged) as error:
        earliest_new_key(serve(*map(reply, lists)).client, "deploy", created, known_ids=[])
    assert (error.value.kind, error.value.details) == ("name_changed", {"key_ids": [7], "stored_name": "ci"})
    assert str(error.value).endswith("Use the name as the service stores it: 'ci'.")


@pytest.mark.parametrize(
    "body",
    [
        *({"id": key_id, "key": "new"} for key_id in (0, -6, 5)),
        *({"id": 6, "key": secret} for secret in ("", "a b", " é", "one\ntwo", "new\n", "x" * 4097, API_KEY)),
    ],
)
def test_a_creation_result_without_a_new_key_is_unconfirmed(serve: Serve, body: dict[str, Any]) -> None:
    served = serve(reply(body), reply([key(5, name="ci"), key(6)]))
    with pytest.raises(OrphanedKey, match="not what the API describes") as error:
        create_key(served.client, "deploy", known_ids=[5])
    assert error.value.details["key_ids"] == [6]
    assert not body["key"] or f"'{body['key'][:10]}" not in str(error.value.as_result())


PROBLEM = (
    "The request to create API key 'deploy' got no usable response. "
    "It was not retried, because that could create a second key."
)
CAUSE = "Error: POST /api_keys returned 500 Internal Server Error."


@pytest.mark.parametrize(
    "listed, outcome, key_ids",
    [
        (reply([key(5)]), "The service lists no new key of that name. Run the task again.", []),
        (
            reply([key(5), key(6), key(7, name="ci")]),
            "Key 6 is new, and nobody has its secret unless another host created it. "
            "Revoke it with state=absent and id=6, then run the task again.",
            [6],
        ),
        (
            reply([key(6), key(7)]),
            "Keys 6 and 7 are new: other hosts created them, or all but one, whose secret nobody has. "
            "Revoke that one with state=absent and its id, then run the task again.",
            [6, 7],
        ),
        (
            reply({"message": "no"}, 403),
            "The keys could not be listed to find out whether it created one: GET /api_keys returned 403 Forbidden: no. "
            "List them later, revoke a new key of that name by its id, then run the task again.",
            [],
        ),
    ],
)
def test_an_unconfirmed_creation_says_which_keys_are_new(
    serve: Serve, listed: Reply, outcome: str, key_ids: list[int]
) -> None:
    with pytest.raises(OrphanedKey) as error:
        create_key(serve(reply({}, 500), listed).client, "deploy", known_ids=[5])
    assert str(error.value) == f"{PROBLEM} {outcome} {CAUSE}"
    assert error.value.details["key_ids"] == key_ids


@pytest.mark.parametrize(
    "body, problem",
    [
        ({"id": 6, "key": 7}, "the field 'key' should be a string, not an integer"),
        ({"id": "6", "key": "new"}, "the field 'id' should be an integer, not a string"),
        ({"id": 5, "key": "new"}, "5 cannot be the id of a new key"),
        ({"id": 0, "key": "new"}, "0 cannot be the id of a new key"),
        ({"id": 6, "key": "a b"}, "the field 'key' cannot be a new secret"),
    ],
)
def test_problem_of_a_creation_result(serve: Serve, body: dict[str, Any], problem: str) -> None:
    with pytest.raises(OrphanedKey) as error:
        create_key(serve(reply(body), reply([])).client, "deploy", known_ids=[5])
    assert str(error.value).endswith(
        f" Error: The response to POST /api_keys is not what the API describes: {problem}."
    )


def test_listed_keys_have_no_secrets(serve: Serve) -> None:
    served = serve(reply([{"id": 1, "name": "deploy", "key": "the-secret"}]))
    assert list_keys(served.client) == [{"id": 1, "name": "deploy"}]


def test_the_response_to_a_creation_may_have_no_name(serve: Serve) -> None:
    for fields in ({}, {"name": None}, {"name": "deploy"}):
        created = create_key(serve(reply({"id": 1, "key": "new", **fields})).client, "deploy", known_ids=[5])
        assert created.id == 1


def test_public_fields_of_a_new_key(serve: Serve) -> None:
    created = create_key(serve(reply({"id": 1, "key": "new", "scope": "all"})).client, "deploy", known_ids=[5])
    assert created == CreatedKey("new", {"name": "deploy", "id": 1, "scope": "all"})


def test_a_new_key_that_the_service_rejects(serve: Serve) -> None:
    served = serve(*REJECTIONS)
    with pytest.raises(UnexpectedResponse) as error:
        require_accepted(served.client, ours(7))
    assert str(error.value) == (
        "The service rejects key 7, which it has just created, so that it replaced no other key. Run the task again."
    )
    assert error.value.details == {
        "method": "GET",
        "path": "/api_keys",
        "attempts": 1,
        "request_id": served.requests[1].headers["X-Request-ID"],
    }


@pytest.mark.parametrize(
    "response, problem",
    [
        (reply({}, 403), "Key 7 could not be revoked."),
        (reply({}, 500), "Key 7 may still be valid, because the service did not confirm the revocation."),
    ],
)
def test_a_new_key_that_cannot_be_revoked_again(serve: Serve, response: Reply, problem: str) -> None:
    replies = [response, reply({}, 403)] if "may still" in problem else [response]
    with pytest.raises(OrphanedKey) as error:
        roll_back(serve(*replies, api_retries=0).client, ours(7), "dest can't be written")
    assert str(error.value).startswith(
        f"dest can't be written. This task had created key 7. {problem} Revoke it with state=absent and id=7. Error: DELETE "
    )
    assert error.value.details["key_ids"] == [7]


@pytest.mark.parametrize(
    "ids, text", [([12], "Key 12"), ([12, 13], "Keys 12 and 13"), ([12, 13, 14], "Keys 12, 13 and 14")]
)
def test_keys_in_a_sentence(ids: list[int], text: str) -> None:
    assert numbered(ids) == text


def test_the_longest_secret(serve: Serve) -> None:
    assert create_key(serve(reply({"id": 6, "key": "x" * 4096})).client, "deploy", [5]).secret == "x" * 4096


def test_earliest_new_key_has_the_fields_of_the_list(serve: Serve) -> None:
    listed = {**key(7), "last_used_at": None, "scope": "all"}
    assert earliest_new_key(serve(reply([listed])).client, "deploy", ours(7), []) == listed


def test_revocation_result_keeps_unknown_fields(serve: Serve) -> None:
    revoked = {"id": 7, "revoked": True, "by": {"id": 3}}
    served = serve(reply(revoked))
    assert revoke_key(served.client, key(7)) == revoked
    assert served.targets == ["/api_keys/7"]


def test_revoking_a_missing_key_returns_none(serve: Serve) -> None:
    assert revoke_key(serve(reply({"message": "not found"}, 404)).client, key(7)) is None


@pytest.mark.parametrize("lost", [reply({}, 500), HANG_UP])
def test_404_after_an_attempt_that_may_have_acted_is_a_revocation(serve: Serve, lost: Reply) -> None:
    # A refusal in between changes nothing about it.
    served = serve(lost, reply({}, 503), reply({"message": "not found"}, 404))
    assert revoke_key(served.client, key(7)) == REVOKED


def test_404_after_a_refused_attempt_is_no_revocation_of_this_task(serve: Serve) -> None:
    assert revoke_key(serve(reply({}, 503), reply({"message": "not found"}, 404)).client, key(7)) is None


UNCONFIRMED_TEXT = "Key 7 may still be valid, because the service did not confirm the revocation."
OTHER_KEY = "The service no longer accepts the key that this task authenticates with. Set api_key to another key and run the task again."


@pytest.mark.parametrize(
    "refusals, advice",
    [
        ([reply({}, 429)] * 2 + [reply({}, 503)] * 3, "Run the task again."),
        ([reply({}, 401), *REJECTIONS], OTHER_KEY),
    ],
)
def test_a_refused_retry_is_not_reported_as_a_refused_revocation(
    serve: Serve, refusals: list[Reply], advice: str
) -> None:
    with pytest.raises(RequestFailed) as error:
        revoke_key(serve(HANG_UP, *refusals, api_retries=2).client, key(7))
    assert (not_revoked([7], error.value), retry_advice(error.value)) == (UNCONFIRMED_TEXT, advice)
    assert "An earlier attempt may have been carried out." in str(error.value)


# The end of a revocation with a response that was lost, with api_retries=1 and with 0.
REJECTED = [
    (1, [HANG_UP, reply({}, 401), *REJECTIONS]),
    (1, [HANG_UP, HANG_UP, *REJECTIONS]),
    (1, [reply({}, 500), reply({}, 500), *REJECTIONS]),
    (1, [reply([]), *REJECTIONS]),
    (0, [HANG_UP, *REJECTIONS]),
]


@pytest.mark.parametrize("api_retries, replies", REJECTED)
def test_rejected_client_says_nothing_about_a_key(serve: Serve, api_retries: int, replies: list[Reply]) -> None:
    with pytest.raises(Unauthorized) as error:
        revoke_key(serve(*replies, api_retries=api_retries).client, key(7))
    assert (not_revoked([7], error.value), retry_advice(error.value)) == (UNCONFIRMED_TEXT, OTHER_KEY)


@pytest.mark.parametrize(
    "replies",
    [
        [reply({}, 401)],
        [HANG_UP, reply({}, 401), reply([key(7)])],
        [HANG_UP, reply({}, 401), reply({}, 403)],
    ],
)
def test_key_may_still_be_valid(serve: Serve, replies: list[Reply]) -> None:
    """The request was not sent before, or the service still accepts the key."""
    with pytest.raises(Unauthorized, match="DELETE /api_keys/7 returned 401"):
        revoke_key(serve(*replies).client, key(7))


def test_a_refused_revocation_could_not_be_made(serve: Serve) -> None:
    with pytest.raises(RequestFailed) as error:
        revoke_key(serve(reply({}, 503), reply({}, 401)).client, key(7))
    assert not_revoked([7], error.value) == "Key 7 could not be revoked."


UNCONFIRMED = [
    {"id": 8, "revoked": True},
    *({"id": 7, "revoked": value} for value in (None, 0, 1, "true", "false", False)),
]


@pytest.mark.parametrize("body", [[], {}, {"id": "7"}, {"id": 7}, *UNCONFIRMED])
def test_malformed_revocation_result_raises(serve: Serve, body: Any) -> None:
    with pytest.raises(UnexpectedResponse, match="DELETE /api_keys/7"):
        revoke_key(serve(reply(body)).client, key(7))


@pytest.mark.parametrize(
    "body, problem",
    [
        ({"id": 8, "revoked": True}, "it is about key 8"),
        ({"id": 7, "revoked": False}, "it says that the key is not revoked"),
        ({"id": "7", "revoked": True}, "the field 'id' should be an integer, not a string"),
        ({"id": 7, "revoked": 1}, "the field 'revoked' should be a boolean, not an integer"),
    ],
)
def test_problem_of_a_revocation_result(serve: Serve, body: dict[str, Any], problem: str) -> None:
    with pytest.raises(UnexpectedResponse) as error:
        revoke_key(serve(reply(body), reply([key(7)])).client, key(7))
    assert str(error.value) == f"The response to DELETE /api_keys/7 is not what the API describes: {problem}."


def test_malformed_revocation_result_of_a_key_that_is_gone_is_a_revocation(serve: Serve) -> None:
    served = serve(reply({"id": "7"}), reply([key(8)]))
    assert revoke_key(served.client, key(7)) == REVOKED


@pytest.mark.parametrize("replies, valid", [([reply([])], True), (REJECTIONS, False)])
def test_secret_is_checked_with_requests_of_its_own(serve: Serve, replies: list[Reply], valid: bool) -> None:
    served = serve(*replies)
    assert is_valid_secret(served.client.with_api_key("the-secret")) is valid
    assert [request.headers["Authorization"] for request in served.requests] == ["Bearer the-secret"] * len(replies)


@pytest.mark.parametrize(
    "check, result",
    [
        (is_valid_secret, True),
        (lambda client: require_accepted(client, ours(7)), None),
    ],
)
def test_one_rejection_decides_nothing(serve: Serve, check: Callable[[Client], Any], result: Any) -> None:
    """A part of the service may not know a new key yet, and accepts it a second later.

    https://github.com/FusionAuth/fusionauth-issues/issues/1875
    https://github.com/electric-saw/ccloud-client-go/pull/5
    """
    lost = [HANG_UP] if result == REVOKED else []
    served = serve(*lost, reply({}, 401), reply([]), api_retries=0)
    assert check(served.client) == result
    assert served.clock.pauses == [1.0]


@pytest.mark.parametrize("secret", ["", "two words", "line\nline", "Schlüssel", "\x00"], ids=repr)
def test_secret_that_cannot_be_a_header_is_not_sent(client_without_service: Client, secret: str) -> None:
    assert not is_valid_secret(client_without_service.with_api_key(secret))


def test_other_errors_leave_the_validity_of_the_secret_open(serve: Serve) -> None:
    client = serve(reply({"message": "the-secret may not do this"}, 403)).client
    with pytest.raises(StatusError) as error:
        is_valid_secret(client.with_api_key("the-secret"))
    assert "the-secret" not in str(error.value)


@pytest.fixture
def client_without_service(serve: Serve) -> Client:
    """Its service has no responses left: any request gets a 599."""
    return serve().client
