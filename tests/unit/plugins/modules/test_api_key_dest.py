# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key with dest: the secret is written to a file."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import (
    InvalidOption,
    RequestFailed,
    SecretFileError,
    StatusError,
)
from ansible_collections.clouddb.control.plugins.module_utils._files import atomic_file, file_lock
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import SecretFile
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._keys import ensure
from ansible_collections.clouddb.control.plugins.module_utils._keys.api import OrphanedKey
from ansible_collections.clouddb.control.plugins.module_utils._keys.ensure import OtherKey, SecretUnavailable
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import (
    OLD_SECRET,
    REVOKED_SECRET,
    before,
    ids,
    mode_of,
    no_space,
    one_key,
    task,
    writes,
)
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.special_files import special_files

UNAVAILABLE = pytest.mark.parametrize(
    "content",
    [None, "", " \n", REVOKED_SECRET, f"{REVOKED_SECRET}\nsecond line", "Schlüssel", b"\xff\xfe"],
    ids=["missing", "empty", "blank", "refused with 401", "several lines", "not ASCII", "not UTF-8"],
)


def write(dest: Path, content: str | bytes | None) -> None:
    if content is not None:
        dest.write_bytes(content if isinstance(content, bytes) else content.encode())


def test_file_holds_only_the_secret_with_mode_0600(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    dest = tmp_path / "deploy.key"
    result = task(client, name="deploy", dest=dest)

    secret = dest.read_text()
    assert len(secret) == 64
    assert sandbox.accepts(secret)
    assert mode_of(dest) == 0o600
    assert os.listdir(tmp_path) == ["deploy.key"]
    assert result["changed"]
    assert "key" not in result
    assert secret not in str(result)


def test_parent_of_a_missing_folder(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    """The path that is checked is the one that is written and whose attributes are set."""
    for _run in range(2):
        task(client, name="deploy", dest=tmp_path / "missing" / ".." / "deploy.key")
    assert os.listdir(tmp_path) == ["deploy.key"]
    assert writes(sandbox) == ["POST /api_keys"]


def test_lock_is_held_from_the_first_request_until_the_secret_is_written(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    held = SecretFile.held
    before(monkeypatch, client, "get", lambda: steps.append("listed"))

    @contextmanager
    def recording_held(file: SecretFile) -> Iterator[None]:
        with held(file):
            steps.append("locked")
            yield
            steps.append("written" if Path(file.path).exists() else "not written")

    monkeypatch.setattr(SecretFile, "held", recording_held)
    task(client, name="deploy", dest=tmp_path / "deploy.key")
    assert steps == ["locked", "listed", "written"]
    task(client, check_mode=True, name="deploy", dest=tmp_path / "deploy.key")
    assert len(steps) == 3


def test_second_run_changes_nothing(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    dest = tmp_path / "deploy.key"
    first = task(client, name="deploy", dest=dest)
    secret = dest.read_text()
    again = task(client, name="deploy", dest=dest)
    assert (again["changed"], again["api_key"]["id"]) == (False, first["api_key"]["id"])
    assert dest.read_text() == secret
    assert writes(sandbox) == ["POST /api_keys"]


@one_key
def test_attributes_of_an_existing_file_are_changed(client: Client, tmp_path: Path) -> None:
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    dest.chmod(0o644)
    assert task(client, name="deploy", dest=dest)["changed"]
    assert mode_of(dest) == 0o600
    assert not task(client, name="deploy", dest=dest)["changed"]


@one_key
@pytest.mark.parametrize("regenerate", ["never", "if_lost"])
@pytest.mark.parametrize("content", [OLD_SECRET, f"\n  {OLD_SECRET}\n"], ids=["secret", "surrounding white space"])
def test_valid_secret_is_kept(sandbox: Sandbox, client: Client, tmp_path: Path, content: str, regenerate: str) -> None:
    dest = tmp_path / "deploy.key"
    dest.write_text(content)
    dest.chmod(0o600)
    assert not task(client, name="deploy", dest=dest, regenerate=regenerate)["changed"]
    assert dest.read_text() == content
    assert writes(sandbox) == []


@one_key
def test_always_replaces_a_valid_secret(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    assert task(client, name="deploy", dest=dest, regenerate="always")["changed"]
    assert dest.read_text() != OLD_SECRET
    assert sandbox.accepts(dest.read_text())
    assert len(sandbox.keys("deploy")) == 1


@one_key
@UNAVAILABLE
def test_unavailable_secret_fails_with_never(
    sandbox: Sandbox, client: Client, tmp_path: Path, content: str | bytes | None
) -> None:
    [key] = sandbox.keys("deploy")
    dest = tmp_path / "deploy.key"
    write(dest, content)
    with pytest.raises(SecretUnavailable) as error:
        task(client, name="deploy", dest=dest)
    assert f"id {key['id']}" in str(error.value)
    assert "regenerate: if_lost" in str(error.value)
    assert error.value.details["key_ids"] == [key["id"]]
    assert writes(sandbox) == []
    assert ids(sandbox.keys("deploy")) == [key["id"]]
    assert dest.exists() == (content is not None)


@one_key
@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
@pytest.mark.parametrize("regenerate", ["never", "if_lost", "always"])
def test_valid_secret_of_another_key_is_not_overwritten(
    sandbox: Sandbox, client: Client, tmp_path: Path, regenerate: str, check_mode: bool
) -> None:
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    with pytest.raises(OtherKey, match=r"^dest: .* holds another key .* no key is named 'backup'\."):
        task(client, check_mode, name="backup", dest=dest, regenerate=regenerate)
    assert writes(sandbox) == []
    assert dest.read_text() == OLD_SECRET
    assert sandbox.accepts(OLD_SECRET)


@pytest.mark.parametrize("content", ["", REVOKED_SECRET, "Schlüssel", b"\xff\xfe"])
def test_file_without_a_valid_key_is_overwritten(
    sandbox: Sandbox, client: Client, tmp_path: Path, content: str | bytes
) -> None:
    dest = tmp_path / "deploy.key"
    write(dest, content)
    assert task(client, name="deploy", dest=dest)["changed"]
    assert sandbox.accepts(dest.read_text())


@one_key
@UNAVAILABLE
@pytest.mark.parametrize("regenerate", ["if_lost", "always"])
def test_unavailable_secret_is_replaced(
    sandbox: Sandbox, client: Client, tmp_path: Path, content: str | bytes | None, regenerate: str
) -> None:
    [old] = sandbox.keys("deploy")
    dest = tmp_path / "deploy.key"
    write(dest, content)
    result = task(client, name="deploy", dest=dest, regenerate=regenerate)
    assert result["changed"]
    assert "key" not in result
    assert ids(result["revoked"]) == [old["id"]]
    assert ids(sandbox.keys("deploy")) == [result["api_key"]["id"]]
    assert sandbox.accepts(dest.read_text())
    assert mode_of(dest) == 0o600


@one_key
def test_new_secret_is_written_before_the_old_key_is_revoked(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [old] = sandbox.keys("deploy")
    dest = tmp_path / "deploy.key"
    seen: list[bool] = []
    before(
        monkeypatch,
        client,
        "delete",
        lambda: seen.append(sandbox.accepts(dest.read_text()) and sandbox.accepts(OLD_SECRET)),
    )
    task(client, name="deploy", dest=dest, regenerate="if_lost")
    assert seen == [True]
    assert writes(sandbox) == ["POST /api_keys", f"DELETE /api_keys/{old['id']}"]


@one_key
def test_service_error_does_not_make_the_secret_unavailable(sandbox: Sandbox, client: Client, tmp_path: Path) -> None:
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    sandbox.fault("status", status=403, skip=1)
    with pytest.raises(StatusError) as error:
        task(client, name="deploy", dest=dest, regenerate="if_lost")
    assert error.value.status == 403
    assert OLD_SECRET not in str(error.value)
    assert writes(sandbox) == []
    assert dest.read_text() == OLD_SECRET


@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
@pytest.mark.parametrize(
    ("place", "problem"),
    [(".", "is a directory"), ("a-file/deploy.key", "does not exist")],
)
def test_impossible_path_fails_before_any_request(
    sandbox: Sandbox, client: Client, tmp_path: Path, place: str, problem: str, check_mode: bool
) -> None:
    (tmp_path / "a-file").touch()
    with pytest.raises(InvalidOption, match=f"^dest: .*{problem}"):
        task(client, check_mode, name="deploy", dest=tmp_path / place)
    assert sandbox.sent() == []


@one_key
@special_files
@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_special_file_fails_before_any_request(
    sandbox: Sandbox,
    client: Client,
    tmp_path: Path,
    create: Callable[[Path], object],
    description: str,
    check_mode: bool,
) -> None:
    create(tmp_path / "deploy.key")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(InvalidOption, match=f"^dest: .*{description}"):
        task(client, check_mode, name="deploy", dest=tmp_path / "deploy.key", regenerate="if_lost")
    assert sandbox.sent() == []
    assert sorted(os.listdir(tmp_path)) == before


def test_unwritable_folder_fails_before_the_key_is_created(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "mkstemp", no_space)
    with pytest.raises(SecretFileError, match=r"^dest: .*No space left on device"):
        task(client, name="deploy", dest=tmp_path / "deploy.key")
    assert writes(sandbox) == []


@one_key
@pytest.mark.parametrize("status, kind", [(401, "unexpected_response"), (403, "http_status")])
def test_a_new_key_that_is_not_accepted_replaces_nothing(
    sandbox: Sandbox, client: Client, tmp_path: Path, status: int, kind: str
) -> None:
    old = sandbox.keys("deploy")
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    # The lists before and after the creation succeed.
    sandbox.fault("status", method="GET", path="/api_keys", status=status, skip=2, times=2 if status == 401 else 1)
    with pytest.raises(RequestFailed) as error:
        task(client, name="deploy", dest=dest, regenerate="always")
    assert error.value.kind == kind
    assert ids(sandbox.keys("deploy")) == ids(old)
    assert dest.read_text() == OLD_SECRET
    assert [request.split()[0] for request in writes(sandbox)] == ["POST", "DELETE"]


@one_key
@pytest.mark.parametrize("secret", ["", "two words"])
def test_an_unusable_secret_does_not_overwrite_a_working_one(
    sandbox: Sandbox, client: Client, tmp_path: Path, secret: str
) -> None:
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    sandbox.fault("status", method="POST", status=200, body={"id": 999, "key": secret})
    with pytest.raises(OrphanedKey, match="the field 'key' cannot be a new secret"):
        task(client, name="deploy", dest=dest, regenerate="always")
    assert dest.read_text() == OLD_SECRET
    assert [request.split()[0] for request in writes(sandbox)] == ["POST"]


@pytest.mark.parametrize("of_the_name", [True, False], ids=["this name", "another name"])
def test_the_id_of_an_older_key_is_not_a_new_key(
    sandbox: Sandbox, client: Client, tmp_path: Path, of_the_name: bool
) -> None:
    sandbox.api("POST", "/api_keys", {"key_name": "deploy"})
    [old] = sandbox.keys("deploy")
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    sandbox.fault("status", method="POST", status=200, body={"id": old["id"], "key": "new"})
    with pytest.raises(OrphanedKey, match=f"{old['id']} cannot be the id of a new key"):
        task(client, name="deploy" if of_the_name else "other", dest=dest, regenerate="always")
    assert dest.read_text() == OLD_SECRET
    assert ids(sandbox.keys("deploy")) == [old["id"]]


@one_key
@pytest.mark.parametrize(("call", "requests"), [("fsync", []), ("replace", ["POST", "DELETE"])])
def test_failed_write_leaves_no_new_key(
    sandbox: Sandbox,
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    requests: list[str],
) -> None:
    old = sandbox.keys("deploy")
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    monkeypatch.setattr(os, call, no_space)
    with pytest.raises(SecretFileError, match=r"^dest: .*can't be written: No space left on device"):
        task(client, name="deploy", dest=dest, regenerate="always")
    assert ids(sandbox.keys("deploy")) == ids(old)
    assert [request.split()[0] for request in writes(sandbox)] == requests
    assert dest.read_text() == OLD_SECRET
    assert os.listdir(tmp_path) == ["deploy.key"]


def test_failed_write_and_failed_revocation_name_the_orphaned_key(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", no_space)
    sandbox.fault("status", method="DELETE", status=500, times=None)
    with pytest.raises(OrphanedKey) as error:
        task(client, name="deploy", dest=tmp_path / "deploy.key")
    [orphan] = sandbox.keys("deploy")
    assert "No space left on device" in str(error.value)
    assert f"state=absent and id={orphan['id']}" in str(error.value)
    assert error.value.details["key_ids"] == [orphan["id"]]
    assert error.value.details["status"] == 500
    assert os.listdir(tmp_path) == []


def test_interrupt_while_writing_revokes_the_key(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*paths: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        task(client, name="deploy", dest=tmp_path / "deploy.key")
    assert sandbox.keys("deploy") == []
    assert os.listdir(tmp_path) == []


@one_key
def test_failed_sync_of_the_folder_is_ignored(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    task(client, name="deploy", dest=dest, regenerate="always")
    assert sandbox.accepts(dest.read_text())


def test_path_with_nul_fails_before_any_request(sandbox: Sandbox, client: Client) -> None:
    with pytest.raises(InvalidOption, match="dest: The path has a NUL character"):
        task(client, name="deploy", dest="/tmp/a\0b")
    assert not sandbox.sent()


def may_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no files be created, as for a user without the rights."""

    def denied(*args: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(tempfile, "mkstemp", denied)
    monkeypatch.setattr(file_lock, "_open", denied)


@pytest.mark.parametrize("check_mode", [True, False])
def test_unwritable_folder_fails_before_a_key_is_created(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_mode: bool
) -> None:
    may_only_read(monkeypatch)
    with pytest.raises(InvalidOption, match="dest: This user may not create files in"):
        task(client, name="deploy", dest=tmp_path / "deploy.key", check_mode=check_mode)
    assert not writes(sandbox)


@one_key
@pytest.mark.parametrize("check_mode", [True, False])
def test_mounted_file_fails_before_a_key_is_created(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_mode: bool
) -> None:
    """Only when it is to be written: a valid secret in it is used."""
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    dest.chmod(0o600)
    monkeypatch.setattr(atomic_file, "_is_mount_point", lambda path: path == os.path.realpath(dest))
    assert not task(client, name="deploy", dest=dest, check_mode=check_mode)["changed"]
    with pytest.raises(SecretFileError, match="can't be written: it is a mount point"):
        task(client, name="deploy", dest=dest, regenerate="always", check_mode=check_mode)
    assert not writes(sandbox)


@one_key
@pytest.mark.parametrize("check_mode", [True, False])
def test_valid_secret_is_used_by_a_user_who_may_only_read_it(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_mode: bool
) -> None:
    dest = tmp_path / "deploy.key"
    dest.write_text(OLD_SECRET)
    dest.chmod(0o600)
    may_only_read(monkeypatch)
    assert not task(client, name="deploy", dest=dest, check_mode=check_mode)["changed"]


@pytest.mark.parametrize("check_mode", [True, False])
def test_unreadable_mode_fails_before_any_request(
    sandbox: Sandbox, client: Client, tmp_path: Path, check_mode: bool
) -> None:
    with pytest.raises(InvalidOption, match="^mode: "):
        task(client, name="deploy", dest=tmp_path / "deploy.key", mode=640, check_mode=check_mode)
    assert not sandbox.sent()


def test_interrupt_before_writing_revokes_the_key(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ensure, "earliest_new_key", interrupted)
    with pytest.raises(KeyboardInterrupt):
        task(client, name="deploy", dest=tmp_path / "deploy.key")
    assert not sandbox.keys("deploy")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("regenerate", ["never", "if_lost"])
def test_tasks_that_share_a_file_create_one_key(
    sandbox: Sandbox, client: Client, tmp_path: Path, regenerate: str
) -> None:
    dest = tmp_path / "deploy.key"
    with ThreadPoolExecutor(8) as hosts:
        results = list(hosts.map(lambda host: task(client, name="deploy", dest=dest, regenerate=regenerate), range(8)))
    assert sorted(result["changed"] for result in results) == [False] * 7 + [True]
    assert len(sandbox.keys("deploy")) == 1
    assert sandbox.accepts(dest.read_text())
    assert os.listdir(tmp_path) == ["deploy.key"]


@pytest.mark.parametrize("unsafe_writes", [False, True])
def test_busy_file_is_written_in_place_only_with_unsafe_writes(
    sandbox: Sandbox, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsafe_writes: bool
) -> None:
    def busy(source: str, target: str) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "replace", busy)
    dest = tmp_path / "deploy.key"
    dest.touch(mode=0o600)
    if unsafe_writes:
        task(client, name="deploy", dest=dest, unsafe_writes=True)
        assert sandbox.accepts(dest.read_text())
    else:
        with pytest.raises(SecretFileError, match="busy"):
            task(client, name="deploy", dest=dest)
        assert not sandbox.keys("deploy")
    assert os.listdir(tmp_path) == ["deploy.key"]
