# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key and api_key_info on an account in memory: exactly one key, its secret in the result or in a file, and nothing revoked too early."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from ansible.module_utils import basic

from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    ClouddbError,
    InvalidOption,
    SecretFileError,
)
from ansible_collections.clouddb.control.plugins.module_utils._files import atomic_file
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import SecretFile
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import Unauthorized, UnexpectedResponse
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.modules import api_key, api_key_info
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import OLD_SECRET, ids, mode_of, one_key, task
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.resource_task import writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import ADMIN_SECRET, SimulatedAccount
from ansible_collections.clouddb.control.tests.unit.support.special_files import access_list, failing, set_access_list

Options = dict[str, Any]


def run(account: SimulatedAccount, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """The result of a task for the name deploy."""
    return task(account.client(), check_mode, **{"name": "deploy", **options})


@pytest.fixture
def account() -> SimulatedAccount:
    return SimulatedAccount()


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "deploy.key"


def reject() -> None:
    raise Unauthorized("unauthorized", Request("GET", "/api_keys", "request"), 1, 401)


def interrupt(*args: object) -> None:
    raise KeyboardInterrupt


def test_the_account_in_memory_answers_as_the_sandbox(account: SimulatedAccount, client: Client) -> None:
    def answers(of: Client) -> tuple[list[Any], list[set[str]]]:
        created = of.with_secrets().post("api_keys", body={"key_name": "ci"}).json
        own, errors = of.with_api_key(created["key"]), []
        listed, revoked = own.get("api_keys").json, of.delete("api_keys", created["id"]).json
        for request in (partial(of.delete, "api_keys", created["id"]), partial(own.get, "api_keys")):
            with pytest.raises(ClouddbError) as error:
                request()
            errors.append(error.value.kind)
        uses = [(key["id"], key["last_used_at"] is None) for key in listed]
        values = [created["id"], uses, revoked["name"], revoked["revoked"], errors]
        return values, [*map(set, (created, *listed, revoked))]

    (simulated, fields), (real, real_fields) = answers(account.client()), answers(client)
    assert simulated == real
    assert all(some <= others for some, others in zip(fields, real_fields)), "a field that the service does not send"


def test_a_key_is_created_once(account: SimulatedAccount) -> None:
    result = run(account)
    [key] = [account.keys[key_id] for key_id in account.active]
    after = {"api_keys": [key]}
    common = {"api_key": key, "revoked": []}
    diff = {"before": {"api_keys": []}, "after": after}
    assert result == {"changed": True, "key": account.secrets[key["id"]], **common, "diff": diff, "warnings": []}
    assert account.sent == ["GET", "POST", "GET"]
    assert run(account) == {"changed": False, **common, "diff": {"before": after, "after": after}}
    assert account.sent[3:] == ["GET"]


def test_several_keys_are_a_warning(account: SimulatedAccount) -> None:
    older, newer = account.add(number=2)
    result = run(account)
    assert (result["changed"], result["api_key"]["id"], len(result["warnings"])) == (False, older, 1)
    assert f"(ids {older}, {newer}), and none of them was changed" in result["warnings"][0]


def test_always_creates_the_new_key_before_it_revokes_the_old_ones(account: SimulatedAccount) -> None:
    older = account.add(number=2)
    # With one of them, because the new one revokes them.
    result = task(account.client(account.secrets[older[0]]), name="deploy", regenerate="always")
    new = result["api_key"]["id"]
    assert (account.active, ids(result["revoked"]), result["changed"]) == ([new], older, True)
    assert account.is_active(result["key"])
    # It uses the new key first.
    assert account.sent == ["GET", "POST", "GET", "GET", *(f"DELETE {key_id}" for key_id in older)]
    assert [ids(side["api_keys"]) for side in result["diff"].values()] == [older, [new]]


@pytest.mark.parametrize("fault, created", [("lost", 1), ("error", 0), ("refused", 0)])
def test_a_creation_that_fails_is_not_repeated(account: SimulatedAccount, dest: Path, fault: str, created: int) -> None:
    account.add()
    account.plan(None, fault)
    with pytest.raises(ClouddbError) as error:
        run(account, regenerate="always", dest=dest)
    assert (len(account.active), os.listdir(dest.parent)) == (1 + created, [])
    if fault == "refused":  # it was not sent
        assert (error.value.kind, account.sent) == ("unreachable", ["GET", "POST"])
    else:
        assert (error.value.details["key_ids"], account.sent) == (account.active[1:], ["GET", "POST", "GET"])


@pytest.mark.parametrize("has_dest", [False, True])
def test_the_later_of_two_hosts_revokes_its_key(account: SimulatedAccount, dest: Path, has_dest: bool) -> None:
    account.plan(None, partial(account.create, "deploy"))
    result = run(account, **({"dest": dest} if has_dest else {}))
    [theirs] = account.active
    assert (result["changed"], result["api_key"]["id"], result["revoked"]) == (False, theirs, [])
    [warning] = result["warnings"]
    assert f"Key {theirs} " in warning and f"Key {theirs + 1}, " in warning
    assert ("dest was not written" in warning) is has_dest
    assert account.sent == ["GET", "POST", "GET", f"DELETE {theirs + 1}"]
    assert "key" not in result and not dest.exists()


def test_the_later_of_two_replacements_revokes_only_its_key(account: SimulatedAccount) -> None:
    [older] = account.add()
    # The other host revokes the key that both hosts authenticate with.
    account.plan(None, partial(account.create, "deploy"), lambda: account.keys.pop(older))
    result = task(account.client(account.secrets[older]), name="deploy", regenerate="always")
    assert not result["changed"] and account.active == [result["api_key"]["id"]]


def test_a_failed_second_list_keeps_the_key_and_warns(account: SimulatedAccount) -> None:
    account.plan(None, None, "error")
    result = run(account)
    assert account.active == [result["api_key"]["id"]] and account.is_active(result["key"])
    assert ["could not be listed again" in each for each in result["warnings"]] == [True]


def test_no_key_is_created_under_a_name_that_ends_with_white_space(account: SimulatedAccount, dest: Path) -> None:
    with pytest.raises(ClouddbError) as error:
        run(account, name="ci ", dest=dest)
    assert (error.value.details, account.active) == ({"option": "name"}, [])


@pytest.mark.parametrize("fault", [None, "refused"])
def test_an_interrupted_task_revokes_its_key_or_names_it(account: SimulatedAccount, fault: str | None) -> None:
    account.plan(None, None, interrupt, fault)
    with pytest.raises(ClouddbError if fault else KeyboardInterrupt) as error:
        run(account)
    assert account.active == ([2] if fault else [])
    if isinstance(error.value, ClouddbError):
        assert error.value.details["key_ids"] == [2]
        assert str(error.value).startswith("KeyboardInterrupt. This task had created key 2.")


def test_an_interrupted_task_keeps_a_key_that_is_in_the_file(account: SimulatedAccount, dest: Path) -> None:
    account.add()
    with mock.patch.object(atomic_file, "_sync_directory", interrupt), pytest.raises(KeyboardInterrupt):
        run(account, dest=dest, regenerate="always")
    assert account.is_active(dest.read_text())


def test_the_file_has_only_the_secret(account: SimulatedAccount, dest: Path) -> None:
    result = run(account, dest=dest)
    assert result["changed"] and "key" not in result
    assert dest.read_text() == account.secrets[account.active[0]]
    assert (mode_of(dest), os.listdir(dest.parent)) == (0o600, ["deploy.key"])
    assert (run(account, dest=dest)["changed"], account.sent.count("POST")) == (False, 1)


@pytest.mark.parametrize("regenerate", ["never", "if_lost"])
def test_a_valid_secret_is_kept(account: SimulatedAccount, dest: Path, regenerate: str) -> None:
    """Whatever white space is around it."""
    [key_id] = account.add()
    dest.write_text(f"\n {account.secrets[key_id]} \n")
    dest.chmod(0o644)
    # Only the mode is changed.
    assert [run(account, dest=dest, regenerate=regenerate)["changed"] for _run in range(2)] == [True, False]
    assert (account.active, mode_of(dest)) == ([key_id], 0o600)
    assert account.sent == ["GET", "GET"] * 2


@pytest.mark.parametrize("content", [None, b" \n", b"rejected", b"\xff\xfe"], ids=repr)
def test_an_unavailable_secret_is_replaced_with_if_lost(account: SimulatedAccount, dest: Path, content: Any) -> None:
    older = account.add(number=2)
    if content is not None:
        dest.write_bytes(content)
    reason = {None: "does not exist", b"rejected": "rejects"}.get(content, "is empty")
    for check_mode in (True, False):
        with pytest.raises(ClouddbError, match=f"{reason}.* regenerate: if_lost") as error:
            run(account, check_mode, dest=dest)
        assert (error.value.kind, error.value.details) == ("secret_unavailable", {"key_ids": older})
    assert set(account.sent) == {"GET"}
    assert (dest.read_bytes() if dest.exists() else None) == content
    assert ids(run(account, dest=dest, regenerate="if_lost")["revoked"]) == older
    assert [account.secrets[key_id] for key_id in account.active] == [dest.read_text()]


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("regenerate", ["never", "if_lost", "always"])
def test_a_file_with_more_than_a_key_is_not_replaced(
    account: SimulatedAccount, dest: Path, regenerate: str, check_mode: bool
) -> None:
    keys = account.add()
    before = f"CLOUDDB_API_KEY={account.secrets[keys[0]]}\nOTHER=1\n"
    dest.write_text(before)
    with pytest.raises(SecretFileError, match="must hold a key and nothing else"):
        run(account, check_mode, dest=dest, regenerate=regenerate)
    assert (account.active, account.sent, dest.read_text()) == (keys, [], before)
    assert os.listdir(dest.parent) == ["deploy.key"]


def test_the_new_secret_is_written_before_the_old_key_is_revoked(account: SimulatedAccount, dest: Path) -> None:
    [older] = account.add()
    dest.write_text(account.secrets[older])
    seen: list[str] = []
    account.plan(*[None] * 4, lambda: seen.append(dest.read_text()))
    run(account, dest=dest, regenerate="always")
    assert account.sent[4:] == [f"DELETE {older}"]
    assert seen == [account.secrets[account.active[0]]]


@pytest.mark.parametrize("check_mode", [False, True])
def test_no_key_is_created_for_a_file_with_hard_links(account: SimulatedAccount, dest: Path, check_mode: bool) -> None:
    """Otherwise, its other names would keep the old secret."""
    [older] = account.add()
    dest.write_text(account.secrets[older])
    os.link(dest, dest.with_name("other"))
    with pytest.raises(InvalidOption, match="^dest: .* has 2 hard links, .* Replace the other links"):
        run(account, check_mode, dest=dest, regenerate="always")
    assert account.active == [older]
    # A file that stays is not refused.
    assert run(account, check_mode, dest=dest)["revoked"] == []


def test_unsafe_writes_give_all_hard_links_the_secret(account: SimulatedAccount, dest: Path) -> None:
    [older] = account.add()
    dest.write_text(account.secrets[older])
    os.link(dest, dest.with_name("other"))
    run(account, dest=dest, regenerate="always", unsafe_writes=True)
    secrets = {path.read_text() for path in dest.parent.iterdir()}
    assert [*secrets] == [account.secrets[key_id] for key_id in account.active]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("regenerate", ["never", "always"])
def test_secret_of_another_key_stays(account: SimulatedAccount, dest: Path, regenerate: str, check_mode: bool) -> None:
    [other] = account.add(name="backup")
    dest.write_text(account.secrets[other])
    with pytest.raises(ClouddbError) as error:
        run(account, check_mode, dest=dest, regenerate=regenerate)
    assert (error.value.kind, account.active, dest.read_text()) == ("other_key", [other], account.secrets[other])
    # Without a valid key in it, it is.
    del account.keys[other]
    assert run(account, dest=dest)["changed"]


def test_a_new_key_that_is_rejected_replaces_nothing(account: SimulatedAccount, dest: Path) -> None:
    [older] = account.add()
    dest.write_text(account.secrets[older])
    account.plan(None, None, reject, reject)
    with pytest.raises(UnexpectedResponse):
        run(account, dest=dest, regenerate="always")
    assert (account.active, dest.read_text()) == ([older], account.secrets[older])


@pytest.mark.parametrize(
    "of, call, number, said",
    [
        (tempfile, "mkstemp", errno.ENOSPC, "No space left on device. Check "),
        (os, "fsync", errno.ENOSPC, "No space left on device. Check "),
        (os, "replace", errno.ENOSPC, "No space left on device. Check "),
        (os, "replace", errno.EBUSY, "If it is mounted into a container, set unsafe_writes"),
    ],
)
@pytest.mark.parametrize("is_revoked", [True, False])
def test_a_failed_write_leaves_no_key_or_names_it(
    account: SimulatedAccount, dest: Path, of: Any, call: str, number: int, said: str, is_revoked: bool
) -> None:
    dest.write_text("old")
    # The list, two checks of the file's content, the creation and another list come before the revocation.
    account.plan(*[None] * 5, None if is_revoked else "refused")
    orphaned = [2] if call == "replace" and not is_revoked else []
    with mock.patch.object(of, call, failing(number)), pytest.raises(ClouddbError, match=re.escape(said)) as error:
        run(account, dest=dest)
    assert isinstance(error.value, SecretFileError) is (not orphaned)
    assert account.sent.count("POST") == (call == "replace")
    assert (account.active, error.value.details.get("key_ids", [])) == (orphaned, orphaned)
    assert (dest.read_text(), sorted(os.listdir(dest.parent))) == ("old", ["deploy.key"])


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_user_who_may_only_read_the_file_can_use_it(
    account: SimulatedAccount, dest: Path, monkeypatch: pytest.MonkeyPatch, check_mode: bool
) -> None:
    def open_existing(path: str, flags: int, *mode: int, **options: Any) -> int:
        return failing(errno.EACCES)() if flags & os.O_CREAT else opened(path, flags, *mode, **options)

    opened = os.open
    monkeypatch.setattr(os, "open", open_existing)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InvalidOption) as error:
        run(account, check_mode, dest=dest)
    assert error.value.details == {"option": "dest"}
    [key_id] = account.add()
    dest.write_text(account.secrets[key_id])
    dest.chmod(0o600)
    assert run(account, check_mode, dest=dest)["revoked"] == []
    assert "POST" not in account.sent and os.listdir(dest.parent) == ["deploy.key"]


def test_the_folder_is_locked_until_the_secret_is_written(account: SimulatedAccount, dest: Path) -> None:
    """From before the first request on."""
    steps: list[object] = []
    held = SecretFile.held

    @contextmanager
    def recording(file: SecretFile) -> Iterator[None]:
        with held(file):
            steps.append(list(account.sent))
            yield
            steps.append(dest.exists())

    with mock.patch.object(SecretFile, "held", recording):
        run(account, dest=dest)
    assert steps == [[], True]


def test_a_missing_folder_fails_except_in_check_mode(account: SimulatedAccount) -> None:
    assert run(account, True, dest="/missing/deploy.key")["changed"]
    account.sent.clear()
    with pytest.raises(InvalidOption):
        run(account, dest="/missing/deploy.key")
    assert account.sent == []  # before any request


@pytest.mark.parametrize("number, remaining", [(1, 0), (2, 1)])
def test_older_keys_that_cannot_be_revoked_are_named(account: SimulatedAccount, number: int, remaining: int) -> None:
    older = account.add(number=number)
    account.plan(*[None] * (4 + remaining), *["error"] * 9)
    with pytest.raises(ClouddbError) as error:
        run(account, regenerate="always")
    result, new = error.value.as_result(), max(account.keys)
    assert account.secrets[new] == result["key"] and result["key"] not in result["msg"]
    assert f"The new key {new} is in use." in result["msg"]
    assert (ids(result["revoked"]), result["failure"]["key_ids"]) == (older[:remaining], older[remaining:])


@pytest.mark.parametrize("options", [{"dest": "key", "mode": "0000"}, {"name": None, "id": 2}])
def test_absent_revokes_the_key(account: SimulatedAccount, options: dict[str, Any]) -> None:
    [key_id] = account.add()
    key = account.keys[key_id]
    result = run(account, state="absent", **options)
    assert (result["changed"], result["api_key"], ids(result["revoked"])) == (True, None, [key_id])
    assert result["diff"] == {"before": {"api_keys": [key]}, "after": {"api_keys": []}}
    assert account.active == []
    again = run(account, state="absent", **options)
    assert (again["changed"], again["revoked"], account.sent) == (False, [], ["GET", f"DELETE {key_id}", "GET"])


def test_absent_needs_allow_multiple_for_several_keys(account: SimulatedAccount) -> None:
    keys = account.add(number=4)
    for check_mode in (True, False):
        with pytest.raises(ClouddbError) as error:
            run(account, check_mode, state="absent")
        assert (error.value.kind, error.value.details) == ("several_keys", {"key_ids": keys})
    for position in (2, 0, 3):
        account.use(account.secrets[keys[position]])
    client = account.client(account.secrets[keys[2]])
    result = task(client, state="absent", name="deploy", allow_multiple=True)
    # The one that was never used is first, the task's own is last.
    assert ids(result["revoked"]) == [keys[1], keys[0], keys[3], keys[2]]


def test_own_key_that_is_listed_late(account: SimulatedAccount) -> None:
    """Without it, no other can be revoked."""
    keys = account.add(number=3)
    client = account.client(account.secrets[keys[1]])
    account.use = lambda secret: None if account.is_active(secret) else reject()  # type: ignore[method-assign]
    with pytest.raises(ClouddbError) as error:
        task(client, state="absent", name="deploy", allow_multiple=True)
    result = error.value.as_result()
    assert (ids(result["revoked"]), result["failure"]["key_ids"], result["changed"]) == (keys[:2], keys[2:], True)
    assert result["failure"]["status"] == 401 and "Set api_key to another key" in result["msg"]


def test_a_key_that_somebody_else_has_revoked_first(account: SimulatedAccount) -> None:
    [key_id] = account.add()
    account.plan(None, lambda: account.keys.pop(key_id))
    result = run(account, state="absent")
    assert (result["changed"], result["revoked"]) == (False, [])


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("content", [None, "rejected", ADMIN_SECRET], ids=["no file", "rejected", "valid"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"regenerate": "always"},
        {"dest": True, "regenerate": "if_lost"},
        {"dest": True, "regenerate": "always"},
        {"state": "absent", "allow_multiple": True},
    ],
    ids=["present", "always", "dest, if_lost", "dest, always", "absent"],
)
def test_check_mode_predicts_the_result_and_changes_nothing(
    account: SimulatedAccount, dest: Path, number: int, content: str | None, options: dict[str, Any]
) -> None:
    if options.get("dest"):
        options = {**options, "dest": dest}
        # Any valid key counts as the key's own secret, if there is one of the name.
        if content and (number or content != ADMIN_SECRET):
            dest.write_text(content)
            dest.chmod(0o600)
    keys = account.add(number=number)
    files = {path: path.read_text() for path in dest.parent.iterdir()}
    predicted = run(account, True, **options)
    assert account.active == keys and set(account.sent) == {"GET"}
    assert {path: path.read_text() for path in dest.parent.iterdir()} == files
    real = run(account, **options)
    assert set(predicted) | {"warnings"} == set(real) | {"warnings"}
    assert predicted["changed"] == real["changed"]
    assert ids(predicted["revoked"]) == ids(real["revoked"])
    assert ids(predicted["diff"]["before"]["api_keys"]) == ids(real["diff"]["before"]["api_keys"])
    assert len(predicted["diff"]["after"]["api_keys"]) == len(real["diff"]["after"]["api_keys"])
    assert ("key" in predicted) == ("key" in real) and predicted.get("key") is None


def test_a_planned_key_has_no_id(account: SimulatedAccount) -> None:
    unknown = {"id": None, "created_at": None, "last_used_at": None, "last_used_from_addr": ""}
    assert run(account, True)["api_key"] == {"name": "deploy", **unknown}


@pytest.mark.parametrize("name, expected", [(None, [1, 2, 3]), ("deploy", [2, 3]), ("dep", [])])
def test_keys_are_listed_by_their_exact_name(account: SimulatedAccount, name: str | None, expected: list[int]) -> None:
    account.add(number=2)
    params = {"name": name, "fields": None}
    assert ids(api_key_info.run(params, account.client(), False)["api_keys"]) == expected
    reduced = api_key_info.run({**params, "fields": ["id"]}, account.client(), False)
    assert reduced == {"changed": False, "api_keys": [{"id": key_id} for key_id in expected], "warnings": []}


# main(): file attributes, diff mode and censored output, as AnsibleModule does them


@pytest.fixture
def options(sandbox: Sandbox, dest: Path, no_delays: FakeClock) -> dict[str, Any]:
    return {"base_url": sandbox.base_url, "api_key": sandbox.api_key, "name": "deploy", "dest": str(dest)}


def test_attributes_follow_the_rename(options: dict[str, Any], dest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, dict[str, Any]]] = []

    def set_attributes(_module: Any, wanted: dict[str, Any], changed: bool, *args: Any, **kwargs: Any) -> bool:
        given.append((wanted["path"], {name: wanted[name] for name in ("mode", "attributes")}))
        return changed

    monkeypatch.setattr(basic.AnsibleModule, "set_fs_attributes_if_different", set_attributes)
    assert run_main(api_key, {**options, "attributes": "+i"}).success["changed"]
    (temporary, at_first), in_place = given
    assert Path(temporary).parent == dest.parent and temporary != str(dest)
    assert at_first == {"mode": "u=rw,o=", "attributes": None}
    assert in_place == (str(dest), {"mode": "u=rw,o=", "attributes": "+i"})
    assert not run_main(api_key, {**options, "attributes": "+i"}).success["changed"]


@one_key
def test_failure_after_the_replacement_returns_the_new_key(sandbox: Sandbox, options: Options, dest: Path) -> None:
    def unsupported(module: Any, path: str, attributes: str | None, changed: bool, *args: Any, **kwargs: Any) -> bool:
        if attributes:
            module.fail_json(path=path, msg="chattr failed", details=f"Operation not supported on {path}")
        return changed

    [old] = sandbox.keys("deploy")
    dest.write_text(OLD_SECRET)
    with mock.patch.object(basic.AnsibleModule, "set_attributes_if_different", unsupported):
        ended = run_main(api_key, {**options, "regenerate": "always", "attributes": "+Q"})
    [new] = sandbox.keys("deploy")
    assert (ended.failure, ended.result["changed"]) == ({"kind": "secret_file"}, True)
    assert (ended.result["api_key"]["id"], ids(ended.result["revoked"])) == (new["id"], [old["id"]])
    # Ansible's message, without the name of the temporary file.
    assert ended.result["msg"].startswith(f"dest: chattr failed: Operation not supported on {dest}. ")
    assert sandbox.accepts(dest.read_text()) and dest.read_text() not in ended.printed


@pytest.mark.parametrize(
    ("invalid", "kind"),
    [
        ({"owner": "nobody-of-that-name"}, "secret_file"),
        # The owner could not read the file. An octal number without quotes is a decimal one: 640 is 01200.
        ({"mode": 640}, "invalid_option"),
        ({"mode": "u-r"}, "invalid_option"),
    ],
    ids=str,
)
def test_with_invalid_attributes_no_key_is_created(
    sandbox: Sandbox, options: Options, dest: Path, invalid: Options, kind: str
) -> None:
    ended = run_main(api_key, {**options, **invalid})
    assert (ended.failure["kind"], ".tmp" in ended.result["msg"]) == (kind, False)
    assert writes(sandbox) == [] and not dest.exists()


@one_key
@pytest.mark.parametrize("check_mode", [True, False])
def test_mode_of_an_existing_file_is_changed(options: dict[str, Any], dest: Path, check_mode: bool) -> None:
    dest.write_text(OLD_SECRET)
    dest.chmod(0o644)
    ended = run_main(api_key, options, check_mode, diff=True).success
    assert (ended["changed"], mode_of(dest)) == (True, 0o644 if check_mode else 0o640)
    before, after = ended["diff"]["before"], ended["diff"]["after"]
    assert before.pop("api_keys") == after.pop("api_keys")
    assert (before, after) == ({"path": str(dest), "mode": "0644"}, {"path": str(dest), "mode": "0640"})


@one_key
@pytest.mark.parametrize(("mode", "expected"), [(None, 0o640), ("u+rw", 0o640), ("0600", 0o600)])
def test_the_mode_can_withdraw_an_access_list(options: Options, dest: Path, mode: str | None, expected: int) -> None:
    dest.write_text(OLD_SECRET)
    dest.chmod(0o600)
    set_access_list(dest)
    for regenerate in ("never", "always"):
        run_main(api_key, {**options, "mode": mode, "regenerate": regenerate})
        # The group's permissions in the mode are the mask of the list.
        assert (access_list(dest) is None, mode_of(dest)) == (False, expected)
