# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key when the disk or the service fails it between the creation and the rename: no key whose secret nobody has, unless the message names it."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.plugins.faults import plays
from ansible_collections.clouddb.control.tests.unit.plugins.faults.own_process import run_apart
from ansible_collections.clouddb.control.tests.unit.plugins.faults.wire import Exchange, Play, Wire, answered
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import OLD_SECRET, ids, one_key
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

NOBODY = 65534


@pytest.fixture
def dest() -> Iterator[Path]:
    """A file in a folder that any user reaches."""
    with TemporaryDirectory(prefix="clouddb-") as folder:
        os.chmod(folder, 0o755)
        secrets = Path(folder) / "secrets"
        secrets.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(secrets, NOBODY, NOBODY)
        yield secrets / "deploy.key"


def be_ordinary(options: dict[str, Any]) -> None:
    """Root may write wherever it likes. What an ordinary user may not be able to import is imported before."""
    run_main(api_key, options, check_mode=True)
    if os.geteuid() == 0:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)


def options_of(wire: Wire, sandbox: Sandbox, path: Path, **options: Any) -> dict[str, Any]:
    return {
        "base_url": wire.base_url,
        "api_key": sandbox.api_key,
        "api_retries": 1,
        "name": "deploy",
        "dest": str(path),
        **options,
    }


def once_created(action: Callable[[], object]) -> Play:
    """The key is created; before the task hears of it, something else happens."""

    def play(exchange: Exchange) -> None:
        response = exchange.carry_out()
        action()
        answered(exchange._replace(carry_out=lambda: response))

    return play


def limit_files(size: int) -> None:
    """No file of this process grows beyond this size: the write that meets it is cut, and the next one fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@one_key
@pytest.mark.parametrize("room", [0, 1, 63])
@pytest.mark.parametrize("had_secret", [True, False])
def test_full_disk(sandbox: Sandbox, wire: Wire, dest: Path, room: int, had_secret: bool) -> None:
    [old] = sandbox.keys("deploy")
    if had_secret:
        dest.write_text(OLD_SECRET)
    ended = run_apart(api_key, options_of(wire, sandbox, dest, regenerate="always"), lambda: limit_files(room))
    assert ended.failure["kind"] == "secret_file"
    assert ended.result["msg"] == f"dest: {dest} can't be written: File too large"
    # The new key is gone again, and everything is as before.
    assert ids(sandbox.keys("deploy")) == [old["id"]]
    assert [request.method for request in wire.requests if request.method != "GET"] == ["POST", "DELETE"]
    assert os.listdir(dest.parent) == (["deploy.key"] if had_secret else [])
    assert not had_secret or dest.read_text() == OLD_SECRET


def test_folder_becomes_read_only(sandbox: Sandbox, wire: Wire, dest: Path) -> None:
    wire.hit(once_created(lambda: dest.parent.chmod(0o500)), "POST", 1)
    options = options_of(wire, sandbox, dest)
    ended = run_apart(api_key, options, lambda: be_ordinary(options))
    assert ended.failure["kind"] == "secret_file"
    assert ended.result["msg"] == f"dest: {dest} can't be written: Permission denied"
    assert sandbox.keys("deploy") == []
    # Nobody can remove the temporary file from such a folder; it holds no secret.
    assert [path.read_text() for path in dest.parent.iterdir()] in ([], [""])


def test_folder_becomes_read_only_and_revocation_fails(sandbox: Sandbox, wire: Wire, dest: Path) -> None:
    wire.hit(once_created(lambda: dest.parent.chmod(0o500)), "POST", 1)
    sandbox.fault("status", status=503, method="DELETE", times=None)
    options = options_of(wire, sandbox, dest, api_retries=0)
    ended = run_apart(api_key, options, lambda: be_ordinary(options))
    [orphan] = sandbox.keys("deploy")
    assert (ended.failure["kind"], ended.failure["key_ids"]) == ("orphaned_key", [orphan["id"]])
    assert "Permission denied" in ended.result["msg"]
    assert f"state=absent and id={orphan['id']}" in ended.result["msg"]


def test_folder_is_moved_away(sandbox: Sandbox, wire: Wire, dest: Path) -> None:
    elsewhere = dest.parent.with_name("elsewhere")
    wire.hit(once_created(lambda: dest.parent.rename(elsewhere)), "POST", 1)
    ended = run_main(api_key, options_of(wire, sandbox, dest))
    assert ended.failure["kind"] == "secret_file"
    assert ended.result["msg"] == f"dest: {dest} can't be written: No such file or directory"
    assert sandbox.keys("deploy") == []
    assert [path.read_text() for path in elsewhere.iterdir()] in ([], [""])


@pytest.mark.parametrize("with_file", [True, False], ids=["dest", "result"])
@pytest.mark.parametrize(
    "play",
    [plays.reset_before, plays.answer_lost, plays.truncated, plays.error(500)],
    ids=["reset", "lost", "truncated", "500"],
)
def test_failed_second_list_keeps_the_secret(
    sandbox: Sandbox, wire: Wire, dest: Path, play: Play, with_file: bool
) -> None:
    # Ansible shows the same warning only once in a process.
    name = f"deploy-{with_file}"
    wire.hit(play, "GET", times=1, skip=1)
    result = run_main(
        api_key, options_of(wire, sandbox, dest, name=name, dest=str(dest) if with_file else None, api_retries=0)
    )
    [key] = sandbox.keys(name)
    assert result.success["api_key"]["id"] == key["id"]
    assert sandbox.accepts(dest.read_text() if with_file else result.success["key"])
    assert "could not be listed again" in " ".join(result.printed.split())


@pytest.mark.parametrize(
    "play",
    [plays.answer_lost, plays.truncated, plays.malformed, plays.latin1],
    ids=["lost", "truncated", "malformed", "not UTF-8"],
)
def test_lost_response_and_failed_second_list(sandbox: Sandbox, wire: Wire, dest: Path, play: Play) -> None:
    wire.hit(play, "POST", 1)
    sandbox.fault("status", status=503, method="GET", skip=1, times=None)
    options = options_of(wire, sandbox, dest, api_retries=0)
    ended = run_main(api_key, options)
    sandbox.control("DELETE", "/faults")
    assert (ended.failure["kind"], ended.failure["key_ids"]) == ("orphaned_key", [])
    assert "revoke a new key of that name by its id" in ended.result["msg"]
    assert os.listdir(dest.parent) == []
    # Nobody knew the id then; the next run does, and makes no second key.
    [orphan] = sandbox.keys("deploy")
    again = run_main(api_key, options)
    assert (again.failure["kind"], again.failure["key_ids"]) == ("secret_unavailable", [orphan["id"]])
    assert sum(request.method == "POST" for request in wire.requests) == 1
