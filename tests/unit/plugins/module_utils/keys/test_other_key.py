# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that holds the secret of a key of another name, while a key of the name exists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._keys.ensure import OtherKey, present
from ansible_collections.clouddb.control.plugins.module_utils._keys.secret_file import SecretFile
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount

each_regenerate = pytest.mark.parametrize("regenerate", ["never", "if_lost", "always"])


@pytest.fixture
def file(tmp_path: Path) -> SecretFile:
    return SecretFile(str(tmp_path / "key"), lambda path: False)


def write(file: SecretFile, secret: str) -> None:
    Path(file.path).write_text(secret, encoding="utf-8")


def during_requests(account: SimulatedAccount, act: Callable[[int], object]) -> list[int]:
    """Call the function before each request, with its number; the list has the numbers of all requests."""
    numbers: list[int] = []

    def before() -> None:
        numbers.append(len(numbers))
        account.before_request = None
        act(numbers[-1])
        account.before_request = before

    account.before_request = before
    return numbers


@each_regenerate
@pytest.mark.parametrize("check_mode", [False, True])
def test_secret_of_another_key_is_kept(
    account: SimulatedAccount, file: SecretFile, regenerate: str, check_mode: bool
) -> None:
    account.create("deploy")
    other_id, other = account.create("backup")
    write(file, other)
    before = list(account.keys)
    with pytest.raises(OtherKey) as error:
        present(account.client(), "deploy", file, regenerate, check_mode)
    assert str(error.value) == (
        f"dest: {file.path} holds the secret of key {other_id}, whose name is 'backup', not 'deploy'. Nothing was changed. Set "
        "dest to another path, or remove the file first."
    )
    assert error.value.details == {"key_ids": [other_id]}
    assert (file.read(), list(account.keys)) == (other, before)


@pytest.mark.parametrize("regenerate", ["never", "if_lost"])
def test_usual_run_sends_two_requests(account: SimulatedAccount, file: SecretFile, regenerate: str) -> None:
    write(file, account.create("deploy")[1])
    account.create("backup")
    numbers = during_requests(account, lambda number: None)
    before = account.clock.elapsed
    assert not present(account.client(), "deploy", file, regenerate, False)["changed"]
    assert numbers == [0, 1]
    assert account.clock.elapsed - before < 1


@pytest.mark.parametrize("used", [{1, 2, 3}, {1, 2}, {2}, {3}], ids=str)
def test_key_of_the_name_that_is_in_use_may_be_that_of_the_file(
    account: SimulatedAccount, file: SecretFile, used: set[int]
) -> None:
    _id, secret = account.create("deploy")
    write(file, account.create("backup")[1])
    during_requests(account, lambda number: account.use(secret) if number in used else None)
    assert not present(account.client(), "deploy", file, "never", False)["changed"]


@pytest.mark.parametrize("used, is_known", [({1, 2}, False), ({1, 2, 3}, True), ({1}, True), ({2, 3}, True)], ids=str)
def test_other_keys_that_are_in_use(
    account: SimulatedAccount, file: SecretFile, used: set[int], is_known: bool
) -> None:
    account.create("deploy")
    write(file, account.create("backup")[1])
    _id, secret = account.create("monitoring")
    during_requests(account, lambda number: account.use(secret) if number in used else None)
    if is_known:
        with pytest.raises(OtherKey, match="backup"):
            present(account.client(), "deploy", file, "never", False)
    else:
        assert not present(account.client(), "deploy", file, "never", False)["changed"]


def test_service_that_records_uses_late(account: SimulatedAccount, file: SecretFile) -> None:
    """Only the use of a key that all tasks authenticate with shows, in each list."""
    key_id, secret = account.create("deploy")
    write(file, secret)
    _id, busy = account.create("tasks")

    def use(number: int) -> None:
        account.use(busy)
        account.keys[key_id].update(last_used_at=None)

    during_requests(account, use)
    unrecorded = account.use

    def use_late(used: str) -> None:
        unrecorded(used)
        account.keys[key_id].update(last_used_at=None)

    account.use = use_late  # type: ignore[method-assign]
    assert not present(account.client(), "deploy", file, "never", False)["changed"]


def test_service_that_shows_no_use_is_not_asked_again(account: SimulatedAccount, file: SecretFile) -> None:
    account.create("deploy")
    write(file, account.create("backup")[1])
    numbers = during_requests(account, lambda number: None)
    account.use = lambda secret: None  # type: ignore[method-assign, assignment]
    assert not present(account.client(), "deploy", file, "never", False)["changed"]
    assert numbers == [0, 1]


def test_secret_that_is_revoked_meanwhile(account: SimulatedAccount, file: SecretFile) -> None:
    account.create("deploy")
    other_id, other = account.create("backup")
    write(file, other)
    during_requests(account, lambda number: account.keys.pop(other_id, None) if number == 2 else None)
    assert not present(account.client(), "deploy", file, "never", False)["changed"]


def test_file_that_cannot_be_read_is_replaced(
    account: SimulatedAccount, file: SecretFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.create("deploy")
    write(file, "anything")

    def refuse(self: SecretFile, private: bool = False) -> None:
        raise SecretFileError("not readable")

    monkeypatch.setattr(SecretFile, "read", refuse)
    assert present(account.client(), "deploy", file, "always", False)["changed"]
    with pytest.raises(SecretFileError, match="not readable"):
        present(account.client(), "deploy", file, "if_lost", False)
