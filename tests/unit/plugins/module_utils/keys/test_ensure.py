# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages and results of api_key: what it refuses, what it leaves behind, and what it predicts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, SecretFileError, Unauthorized
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import SecretFile
from ansible_collections.clouddb.control.plugins.module_utils._keys.api import NameChanged, OrphanedKey
from ansible_collections.clouddb.control.plugins.module_utils._keys.ensure import (
    MultipleKeys,
    OtherKey,
    SecretUnavailable,
    absent,
    present,
)
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount

SHOWN_ONCE = "The service shows a secret only once."


def with_keys(number: int) -> tuple[SimulatedAccount, list[int]]:
    """An account with keys named deploy, each created a second after the one before."""
    account = SimulatedAccount()
    ids = []
    for _key in range(number):
        account.clock.elapsed += 1
        ids.append(account.create("deploy")[0])
    return account, ids


def set_nothing(path: str) -> bool:
    return False


def before_requests(account: SimulatedAccount, *actions: Callable[[], str | None]) -> None:
    """Let the first requests do or return what these functions do or return."""
    remaining = iter(actions)

    def before() -> str | None:
        action = next(remaining, None)
        return action() if action else None

    account.before_request = before


def succeed() -> None:
    """Let a request succeed."""


def fail_from_request(account: SimulatedAccount, number: int, fault: str) -> None:
    """Let all requests fail from this one on, counted from 0."""
    before_requests(account, *[succeed] * number, *[lambda: fault] * 20)


def refused(error: type[ClouddbError], *arguments: Any) -> ClouddbError:
    """The error of a task that changes no key."""
    account: SimulatedAccount = arguments[0]
    before = list(account.keys)
    with pytest.raises(error) as caught:
        present(account.client(), *arguments[1:])
    assert list(account.keys) == before
    return caught.value


# Refusals


def test_unavailable_secret_of_one_key(tmp_path: Path) -> None:
    account, [key_id] = with_keys(1)
    file = SecretFile(str(tmp_path / "key"), set_nothing)
    error = refused(SecretUnavailable, account, "deploy", file, "never", False)
    assert str(error) == (
        f"A key named 'deploy' exists (id {key_id}), but its secret is no longer available. {file.path} does not exist. "
        f"{SHOWN_ONCE} Set regenerate: if_lost to replace the key."
    )
    assert (error.kind, error.details) == ("secret_unavailable", {"key_ids": [key_id]})


@pytest.mark.parametrize("content, reason", [("", "{} is empty."), ("lost", "The service rejects the key in {}.")])
def test_unavailable_secret_of_several_keys(tmp_path: Path, content: str, reason: str) -> None:
    account, ids = with_keys(2)
    file = SecretFile(str(tmp_path / "key"), set_nothing)
    (tmp_path / "key").write_text(content, encoding="utf-8")
    error = refused(SecretUnavailable, account, "deploy", file, "never", False)
    assert str(error) == (
        f"2 keys named 'deploy' exist (ids {ids[0]}, {ids[1]}), but their secrets are no longer available. "
        f"{reason.format(file.path)} {SHOWN_ONCE} Set regenerate: if_lost to replace all of them with one new key."
    )
    assert error.details == {"key_ids": ids}


@pytest.mark.parametrize("regenerate", ["never", "if_lost"])
def test_usual_run_sends_two_requests(tmp_path: Path, regenerate: str) -> None:
    account, [key_id] = with_keys(1)
    (tmp_path / "key").write_text(account.secrets[key_id], encoding="utf-8")
    before = account.clock.elapsed
    assert not present(account.client(), "deploy", SecretFile(str(tmp_path / "key"), set_nothing), regenerate, False)[
        "changed"
    ]
    # Each request takes a millisecond.
    assert round(account.clock.elapsed - before, 6) == 0.002


def test_file_that_cannot_be_read_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account, _ids = with_keys(1)
    file = SecretFile(str(tmp_path / "key"), set_nothing)

    def refuse(self: SecretFile, private: bool = False) -> None:
        raise SecretFileError("not readable")

    monkeypatch.setattr(SecretFile, "read", refuse)
    assert present(account.client(), "deploy", file, "always", False)["changed"]
    with pytest.raises(SecretFileError, match="not readable"):
        present(account.client(), "deploy", file, "if_lost", False)


def test_file_with_another_key(tmp_path: Path) -> None:
    account, [key_id] = with_keys(1)
    file = SecretFile(str(tmp_path / "key"), set_nothing)
    (tmp_path / "key").write_text(account.secrets[key_id], encoding="utf-8")
    error = refused(OtherKey, account, "backup", file, "never", False)
    assert str(error) == (
        f"dest: {file.path} holds another key that the service accepts: no key is named 'backup'. Its secret would be lost. "
        "Set dest to another path, or remove the file first."
    )
    assert error.kind == "other_key"


def test_several_keys_of_the_name() -> None:
    with pytest.raises(MultipleKeys, match="^2 keys are named"):
        absent(with_keys(2)[0].client(), None, "deploy", False, False)
    account, ids = with_keys(3)
    with pytest.raises(MultipleKeys) as error:
        absent(account.client(), None, "deploy", False, False)
    assert str(error.value) == (
        f"3 keys are named 'deploy' (ids {ids[0]}, {ids[1]}, {ids[2]}). "
        "Set id to revoke one of them, or allow_multiple: true to revoke all."
    )
    assert (error.value.kind, error.value.details) == ("several_keys", {"key_ids": ids})
    assert list(account.keys) == [1, *ids]


def test_key_with_a_changed_name_is_revoked(tmp_path: Path) -> None:
    account = SimulatedAccount()
    account.create("ci")
    account.stored_name = str.strip
    refused(NameChanged, account, "ci ", SecretFile(str(tmp_path / "key"), set_nothing), "if_lost", False)
    assert not list(tmp_path.iterdir())


# Present


def test_result_of_a_creation() -> None:
    account, _ids = with_keys(0)
    result = present(account.client(), "deploy", None, "never", False)
    key = account.keys[result["api_key"]["id"]]
    assert key["name"] == "deploy"
    assert result == {
        "changed": True,
        "api_key": key,
        "key": account.secrets[key["id"]],
        "revoked": [],
        "diff": {"before": {"api_keys": []}, "after": {"api_keys": [key]}},
        "warnings": [],
    }


@pytest.mark.parametrize(
    "number, warnings",
    [
        (1, {}),
        (
            2,
            {
                "warnings": [
                    "2 keys are named 'deploy' (ids 2, 3), and none of them was changed. An interrupted task can leave a key "
                    "whose secret nobody has. Revoke unused keys by id, or set regenerate: always to replace all of them "
                    "with one new key."
                ]
            },
        ),
    ],
)
def test_result_of_keys_that_are_kept(number: int, warnings: dict[str, Any]) -> None:
    account, ids = with_keys(number)
    keys = [account.keys[key_id] for key_id in ids]
    result = present(account.client(), "deploy", None, "never", False)
    unchanged = {"before": {"api_keys": keys}, "after": {"api_keys": keys}}
    assert result == {"changed": False, "api_key": keys[0], "revoked": [], "diff": unchanged, **warnings}


def test_always_replaces_a_valid_secret(tmp_path: Path) -> None:
    account, [key_id] = with_keys(1)
    (tmp_path / "key").write_text(account.secrets[key_id], encoding="utf-8")
    result = present(account.client(), "deploy", SecretFile(str(tmp_path / "key"), set_nothing), "always", False)
    assert [key["id"] for key in result["revoked"]] == [key_id]
    assert (tmp_path / "key").read_text(encoding="utf-8") == account.secrets[result["api_key"]["id"]]


@pytest.mark.parametrize(
    "may_create_files, check_mode, locked", [(True, False, 1), (False, False, 0), (True, True, 0), (False, True, 0)]
)
def test_the_folder_is_locked_if_the_task_may_write(
    tmp_path: Path, may_create_files: bool, check_mode: bool, locked: int
) -> None:
    account, [key_id] = with_keys(1)
    (tmp_path / "key").write_text(account.secrets[key_id], encoding="utf-8")
    locks: list[SecretFile] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecretFile, "may_create_files", lambda self: may_create_files)
        patch.setattr(SecretFile, "held", lambda self: nullcontext(locks.append(self)))
        present(account.client(), "deploy", SecretFile(str(tmp_path / "key"), set_nothing), "never", check_mode)
    assert len(locks) == locked


def test_without_a_file_only_always_replaces() -> None:
    account, [key_id] = with_keys(1)
    assert not present(account.client(), "deploy", None, "if_lost", False)["changed"]
    result = present(account.client(), "deploy", None, "always", False)
    assert ([key["id"] for key in result["revoked"]], account.is_active(result["key"])) == ([key_id], True)


@pytest.mark.parametrize("check_mode", [False, True])
def test_attributes_of_a_file_that_is_kept(tmp_path: Path, check_mode: bool) -> None:
    account, [key_id] = with_keys(1)
    path = tmp_path / f"key-{check_mode}"
    path.write_text(account.secrets[key_id], encoding="utf-8")
    calls: list[str] = []

    def set_attributes(path: str) -> bool:
        calls.append(path)
        return True

    result = present(account.client(), "deploy", SecretFile(str(path), set_attributes), "never", check_mode)
    assert (result["changed"], result["revoked"]) == (True, [])
    # In check mode, nothing is written. Otherwise a copy gets them first, so that the file never has half of them.
    assert (str(path) in calls, calls == [str(path)]) == (True, check_mode)
    assert path.read_text(encoding="utf-8") == account.secrets[key_id]


def test_attributes_that_only_the_file_can_have_fail(tmp_path: Path) -> None:
    account, [key_id] = with_keys(1)
    path = tmp_path / "key"

    def set_attributes(changed: str) -> bool:
        if changed == str(path):
            raise SecretFileError("attributes: not supported.", {"errno": 95})
        return False

    with pytest.raises(SecretFileError) as error:
        present(account.client(), "deploy", SecretFile(str(path), set_attributes), "always", False)
    new_id = max(account.keys)
    assert str(error.value) == (
        f"attributes: not supported. The new key {new_id} is in use, and its secret is in {path}."
    )
    result = error.value.as_result()
    assert (error.value.details["errno"], result["api_key"]["id"], result["changed"]) == (95, new_id, True)
    assert [key["id"] for key in result["revoked"]] == [key_id]
    assert account.is_active(path.read_text(encoding="utf-8"))


def test_prediction_of_a_replacement(tmp_path: Path) -> None:
    account, ids = with_keys(2)
    existing = [dict(account.keys[key_id]) for key_id in ids]
    result = present(account.client(), "deploy", None, "always", True)
    planned = {"id": None, "name": "deploy", "created_at": None, "last_used_at": None, "last_used_from_addr": ""}
    assert result == {
        "changed": True,
        "api_key": planned,
        "revoked": [
            {"id": key_id, "name": "deploy", "last_used_at": None, "last_used_from_addr": "", "revoked": True}
            for key_id in ids
        ],
        "diff": {"before": {"api_keys": existing}, "after": {"api_keys": [planned]}},
        "key": None,
    }
    file = SecretFile(str(tmp_path / "key"), set_nothing)
    assert "key" not in present(account.client(), "deploy", file, "always", True)
    assert list(account.keys) == [1, *ids]


def test_warning_about_a_list_that_fails_after_the_creation() -> None:
    account = SimulatedAccount()
    # A list of keys and the creation succeed.
    fail_from_request(account, 2, "error")
    result = present(account.client(), "deploy", None, "never", False)
    assert result["warnings"] == [
        f"Key {result['api_key']['id']} was created, but the keys could not be listed again: another host may have created a "
        "key named 'deploy' at the same time. Check with api_key_info that there is only one. Error: internal error."
    ]


def create_earlier(account: SimulatedAccount) -> int:
    """Let another host create a key between the first list of keys and the creation; its id."""
    another = account.create("deploy")[0]
    hidden = account.keys.pop(another)

    def show() -> None:
        account.keys[another] = hidden

    before_requests(account, succeed, show)
    return another


def test_warning_of_the_later_creator(tmp_path: Path) -> None:
    account, _ids = with_keys(0)
    another = create_earlier(account)
    warning = (
        f"Key {another} of the same name was created a moment earlier by another host or task, which has its secret. "
        f"Key {another + 1}, which this task had created, was revoked."
    )
    result = present(account.client(), "deploy", None, "never", False)
    assert (result["changed"], result["api_key"]["id"], result["warnings"]) == (False, another, [warning])
    assert (result["diff"], "key" in result) == ({"before": {"api_keys": []}, "after": {"api_keys": []}}, False)
    del account.keys[another]
    another = create_earlier(account)
    file = SecretFile(str(tmp_path / "key"), set_nothing)
    [warning] = present(account.client(), "deploy", file, "never", False)["warnings"]
    assert warning.endswith(f"had created, was revoked. {file.path} was not written.")
    assert not (tmp_path / "key").exists()


class NamelessError(Exception):
    """An error whose text is empty."""


def test_reason_of_a_roll_back_that_fails() -> None:
    account = SimulatedAccount()

    def interrupt() -> str:
        raise NamelessError

    # A list and the creation succeed, the next request is interrupted, and the revocation is not sent.
    before_requests(account, succeed, succeed, interrupt, lambda: "refused")
    with pytest.raises(OrphanedKey) as error:
        present(account.client(), "deploy", None, "never", False)
    assert str(error.value).startswith(
        "NamelessError. This task had created key 2. Key 2 could not be revoked. Revoke it with state=absent and id=2."
    )


@pytest.mark.parametrize(
    "number, fault, problem",
    [
        (1, "refused", "Key {} could not be revoked. Revoke it with state=absent and id."),
        (
            2,
            "error",
            "Keys {} and {} may still be valid, because the service did not confirm the revocation. Revoke them with "
            "state=absent and id.",
        ),
    ],
)
def test_older_keys_that_are_left(number: int, fault: str, problem: str) -> None:
    account, ids = with_keys(number)
    # A list, the creation, another list, and the first use of the new key succeed.
    fail_from_request(account, 4, fault)
    with pytest.raises(OrphanedKey) as error:
        present(account.client(), "deploy", None, "always", False)
    new_id = max(account.keys)
    assert f"The new key {new_id} is in use. {problem.format(*ids)}" in str(error.value)
    result = error.value.as_result()
    assert (result["changed"], result["revoked"], account.secrets[new_id]) == (True, [], result["key"])
    assert result["failure"]["key_ids"] == ids


# Absent


@pytest.mark.parametrize("check_mode", [False, True])
def test_absent_by_id_ignores_names(check_mode: bool) -> None:
    account, ids = with_keys(2)
    result = absent(account.client(), ids[0], None, False, check_mode)
    [revocation] = result["revoked"]
    assert (revocation["id"], revocation["revoked"], result["changed"]) == (ids[0], True, True)
    assert list(account.keys) == ([1, *ids] if check_mode else [1, ids[1]])


def test_failed_revocation_of_several_keys() -> None:
    account, ids = with_keys(3)
    # The list and one revocation succeed.
    fail_from_request(account, 2, "refused")
    with pytest.raises(OrphanedKey) as error:
        absent(account.client(), None, "deploy", True, False)
    assert str(error.value).startswith(
        f"Key {ids[0]} was revoked. Keys {ids[1]} and {ids[2]} could not be revoked. Run the task again."
    )
    result = error.value.as_result()
    assert ([key["id"] for key in result["revoked"]], result["changed"]) == ([ids[0]], True)


def test_keys_are_revoked_in_the_order_of_their_last_use() -> None:
    account, ids = with_keys(4)
    for position in (2, 0, 3):
        account.use(account.secrets[ids[position]])
    result = absent(account.client(account.secrets[ids[2]]), None, "deploy", True, False)
    # The one that was never used is first, the task's own is last.
    assert [key["id"] for key in result["revoked"]] == [ids[1], ids[0], ids[3], ids[2]]


def test_own_key_that_is_not_listed_as_the_one_used_last() -> None:
    """The service lists uses late."""
    account, ids = with_keys(4)
    client = account.client(account.secrets[ids[1]])
    account.use = lambda secret: None if account.is_active(secret) else reject()  # type: ignore[method-assign]
    with pytest.raises(OrphanedKey) as error:
        absent(client, None, "deploy", True, False)
    assert str(error.value).startswith(
        f"Keys {ids[0]} and {ids[1]} were revoked. Keys {ids[2]} and {ids[3]} could not be revoked. The service no longer accepts"
    )
    result = error.value.as_result()
    assert ([key["id"] for key in result["revoked"]], result["failure"]["key_ids"]) == (ids[:2], ids[2:])
    assert (result["failure"]["kind"], result["failure"]["status"]) == ("orphaned_key", 401)
    assert list(account.keys) == [1, *ids[2:]]


def reject() -> None:
    raise Unauthorized("unauthorized", "DELETE", "/api_keys", 1, "request", 401, {})
