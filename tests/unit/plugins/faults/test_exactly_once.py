# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key when the disk or the service fails between the POST and the rename of dest: an orphaned key is revoked, or the message names it."""

from __future__ import annotations

import importlib
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _http as http
from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.plugins.faults import injected_errors
from ansible_collections.clouddb.control.tests.unit.plugins.faults.child_process import run_in_child
from ansible_collections.clouddb.control.tests.unit.plugins.faults.faulty_proxy import (
    Exchange,
    FaultyProxy,
    Handler,
    pass_through,
)
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import OLD_SECRET, ids, one_key
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

UNPRIVILEGED = 65534  # the user and the group


@pytest.fixture
def dest() -> Iterator[Path]:
    """A file in a folder that belongs to the unprivileged user."""
    with TemporaryDirectory(prefix="clouddb-") as folder:
        os.chmod(folder, 0o755)
        secrets = Path(folder) / "secrets"
        secrets.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(secrets, UNPRIVILEGED, UNPRIVILEGED)
        yield secrets / "deploy.key"


def drop_privileges(options: dict[str, Any]) -> None:
    """Stop being root, which may write to any folder. Imports before what the user may not be able to read."""
    run_main(api_key, options, check_mode=True)
    importlib.import_module(f"{http.__name__}.failures")
    if os.geteuid() == 0:
        os.setegid(UNPRIVILEGED)
        os.seteuid(UNPRIVILEGED)


def options_of(proxy: FaultyProxy, sandbox: Sandbox, path: Path, **options: Any) -> dict[str, Any]:
    return {
        "base_url": proxy.base_url,
        "api_key": sandbox.api_key,
        "api_retries": 1,
        "name": "deploy",
        "dest": str(path),
        **options,
    }


def before_response(action: Callable[[], object]) -> Handler:
    """Call the action once the sandbox has processed the request, before its response is sent."""

    def handler(exchange: Exchange) -> None:
        response = exchange.forward()
        action()
        pass_through(exchange._replace(forward=lambda: response))

    return handler


def limit_file_size(size: int) -> None:
    """Fail writes beyond this size: the write that reaches it is cut short, the next one fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@one_key
@pytest.mark.parametrize("file_size", [0, 1, 63])
@pytest.mark.parametrize("had_secret", [True, False])
def test_full_disk(sandbox: Sandbox, proxy: FaultyProxy, dest: Path, file_size: int, had_secret: bool) -> None:
    [old] = sandbox.keys("deploy")
    if had_secret:
        dest.write_text(OLD_SECRET)
    outcome = run_in_child(
        api_key, options_of(proxy, sandbox, dest, regenerate="always"), lambda: limit_file_size(file_size)
    )
    assert outcome.failure["kind"] == "secret_file"
    assert outcome.result["msg"] == f"dest: {dest} can't be written: File too large."
    # No key was created, and everything is as before.
    assert ids(sandbox.keys("deploy")) == [old["id"]]
    assert [request.method for request in proxy.requests if request.method != "GET"] == []
    assert os.listdir(dest.parent) == (["deploy.key"] if had_secret else [])
    assert not had_secret or dest.read_text() == OLD_SECRET


def test_folder_becomes_read_only(sandbox: Sandbox, proxy: FaultyProxy, dest: Path) -> None:
    proxy.inject(before_response(lambda: dest.parent.chmod(0o500)), "POST", 1)
    options = options_of(proxy, sandbox, dest)
    outcome = run_in_child(api_key, options, lambda: drop_privileges(options))
    assert outcome.failure["kind"] == "secret_file"
    assert outcome.result["msg"] == f"dest: {dest} can't be written: Permission denied."
    assert sandbox.keys("deploy") == []
    # The temporary file and the lock cannot be removed from a read-only folder; they have no secret.
    assert {path.read_text() for path in dest.parent.iterdir()} == {""}


def test_folder_becomes_read_only_and_revocation_fails(sandbox: Sandbox, proxy: FaultyProxy, dest: Path) -> None:
    proxy.inject(before_response(lambda: dest.parent.chmod(0o500)), "POST", 1)
    sandbox.fault("status", status=503, method="DELETE", times=None)
    options = options_of(proxy, sandbox, dest, api_retries=0)
    outcome = run_in_child(api_key, options, lambda: drop_privileges(options))
    [orphan] = sandbox.keys("deploy")
    assert (outcome.failure["kind"], outcome.failure["key_ids"]) == ("orphaned_key", [orphan["id"]])
    assert "Permission denied" in outcome.result["msg"]
    assert f"state=absent and id={orphan['id']}" in outcome.result["msg"]


def test_folder_is_moved_away(sandbox: Sandbox, proxy: FaultyProxy, dest: Path) -> None:
    elsewhere = dest.parent.with_name("elsewhere")
    proxy.inject(before_response(lambda: dest.parent.rename(elsewhere)), "POST", 1)
    outcome = run_main(api_key, options_of(proxy, sandbox, dest))
    assert outcome.failure["kind"] == "secret_file"
    assert outcome.result["msg"] == f"dest: {dest} can't be written: No such file or directory."
    assert sandbox.keys("deploy") == []
    assert {path.read_text() for path in elsewhere.iterdir()} == {""}


@pytest.mark.parametrize("with_file", [True, False], ids=["dest", "result"])
@pytest.mark.parametrize(
    "error",
    [
        injected_errors.reset_before_forwarding,
        injected_errors.response_lost,
        injected_errors.truncated,
        injected_errors.error_status(500),
    ],
    ids=["reset", "response lost", "truncated", "500"],
)
def test_failed_second_list_keeps_the_secret(
    sandbox: Sandbox, proxy: FaultyProxy, dest: Path, error: Handler, with_file: bool
) -> None:
    # Ansible shows the same warning only once in a process.
    name = f"deploy-{with_file}"
    proxy.inject(error, "GET", times=1, skip=1)
    options = options_of(proxy, sandbox, dest, name=name, api_retries=0)
    if not with_file:
        del options["dest"]
    result = run_main(api_key, options)
    [key] = sandbox.keys(name)
    assert result.success["api_key"]["id"] == key["id"]
    assert sandbox.accepts(dest.read_text() if with_file else result.success["key"])
    assert "could not be listed again" in " ".join(result.printed.split())


@pytest.mark.parametrize(
    "error",
    [
        injected_errors.response_lost,
        injected_errors.truncated,
        injected_errors.malformed,
        injected_errors.latin1,
    ],
    ids=["response lost", "truncated", "malformed", "not UTF-8"],
)
def test_lost_response_and_failed_second_list(sandbox: Sandbox, proxy: FaultyProxy, dest: Path, error: Handler) -> None:
    proxy.inject(error, "POST", 1)
    sandbox.fault("status", status=503, method="GET", skip=1, times=None)
    options = options_of(proxy, sandbox, dest, api_retries=0)
    outcome = run_main(api_key, options)
    sandbox.control("DELETE", "/faults")
    assert (outcome.failure["kind"], outcome.failure["key_ids"]) == ("orphaned_key", [])
    assert "revoke a new key of that name by its id" in outcome.result["msg"]
    assert os.listdir(dest.parent) == []
    # The next run lists the keys: it names the orphaned key and creates no second one.
    [orphan] = sandbox.keys("deploy")
    again = run_main(api_key, options)
    assert (again.failure["kind"], again.failure["key_ids"]) == ("secret_unavailable", [orphan["id"]])
    assert sum(request.method == "POST" for request in proxy.requests) == 1
