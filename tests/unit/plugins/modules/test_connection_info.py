# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""connection_info, against a sandbox."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._files import secret_file
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import UnexpectedResponse
from ansible_collections.clouddb.control.plugins.modules import connection_info
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = "wispy-lake-12345678"
OPTIONS: dict[str, Any] = {
    "project": "shop",
    "branch": None,
    "database": "clouddb",
    "user": None,
    "dest": None,
    "expose_secrets": False,
    "pooled": False,
    "read_only": False,
    "format": "uri",
    "variable": "DATABASE_URL",
}


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}]}


def task(client: Client, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    return connection_info.run({**OPTIONS, **options}, client, check_mode, lambda path: False)


@pytest.fixture
def uri(sandbox: Sandbox) -> str:
    query = "database_name=clouddb&role_name=clouddb_owner"
    return str(sandbox.api("GET", f"/projects/{SHOP}/connection_uri?{query}")["uri"])


def test_secrets_are_returned_only_on_request(client: Client, uri: str) -> None:
    hidden, exposed = task(client), task(client, expose_secrets=True)
    assert (exposed["uri"], exposed["password"] in uri, exposed["port"]) == (uri, True, 5432)
    assert (exposed["user"], exposed["database"], exposed["host"] in uri) == ("clouddb_owner", "clouddb", True)
    assert exposed["password"] not in str(hidden)
    assert {**exposed, "uri": None, "password": None} == {**hidden, "uri": None, "password": None}


def test_the_port_is_that_of_the_connection_string(sandbox: Sandbox, client: Client, uri: str) -> None:
    body = {"uri": uri.replace("/clouddb?", ":6543/clouddb?")}
    sandbox.fault("status", status=200, path="*/connection_uri", body=body)
    assert task(client)["port"] == 6543


def test_the_file_is_written_when_it_differs(client: Client, uri: str, tmp_path: Path) -> None:
    dest = tmp_path / "database.url"
    assert (task(client, True, dest=str(dest))["changed"], dest.exists()) == (True, False)
    assert (task(client, dest=str(dest))["changed"], dest.read_text()) == (True, uri)
    assert task(client, dest=str(dest))["changed"] is False


@pytest.mark.parametrize("is_there", [False, True])
def test_no_other_task_compares_or_writes_the_file_meanwhile(
    sandbox: Sandbox, client: Client, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """Otherwise, it could report a content that this task overwrites."""
    monkeypatch.setattr(secret_file, "LOCK_TIMEOUT", 0.0)
    dest = tmp_path / "database.url"
    if is_there:
        dest.write_text(uri)
    kinds = []

    def run_another_task(path: str) -> bool:
        if path != str(dest):  # the temporary file has been created
            with pytest.raises(ClouddbError) as error:
                task(client, dest=str(dest))
            kinds.append(error.value.kind)
        return False

    body = {"uri": uri.replace("clouddb_owner", "clouddb_reader")}
    sandbox.fault("status", status=200, path="*/connection_uri", body=body, times=1)
    options = {**OPTIONS, "dest": str(dest)}
    assert connection_info.run(options, client, False, run_another_task)["changed"]
    assert (kinds, dest.read_text()) == (["secret_file"], body["uri"])


def test_file_system_attributes_are_set_by_the_run_that_writes_the_file(
    client: Client, uri: str, tmp_path: Path
) -> None:
    """As with api_key: by the first run, not by the one that follows."""
    dest = tmp_path / "database.url"
    paths: list[str] = []

    def set_attributes(path: str) -> bool:
        paths.append(path)
        return False

    options = {**OPTIONS, "dest": str(dest)}
    assert connection_info.run(options, client, True, set_attributes)["changed"] and not paths
    assert connection_info.run(options, client, False, set_attributes)["changed"]
    temporary, in_place = paths
    assert Path(temporary).parent == tmp_path and (temporary != in_place) and in_place == str(dest)
    assert not connection_info.run(options, client, False, set_attributes)["changed"]
    assert paths[2:] == [str(dest)]
    assert os.listdir(tmp_path) == ["database.url"]


def test_a_written_file_whose_attributes_cannot_be_set_is_a_change(client: Client, uri: str, tmp_path: Path) -> None:
    dest = tmp_path / "database.url"

    def set_attributes(path: str) -> bool:
        if path == str(dest):
            raise SecretFileError("dest: chattr failed.")
        return False

    with pytest.raises(SecretFileError) as error:
        connection_info.run({**OPTIONS, "dest": str(dest)}, client, False, set_attributes)
    assert (error.value.result, dest.read_text()) == ({"changed": True}, uri)


@pytest.mark.parametrize("missing", ["project", "branch", "database", "user"])
def test_what_does_not_exist_is_an_error_except_in_check_mode(client: Client, tmp_path: Path, missing: str) -> None:
    dest = str(tmp_path / "database.url")
    with pytest.raises(ClouddbError) as error:
        task(client, **{missing: "missing"}, dest=dest)
    assert (error.value.kind, error.value.details) == ("not_found", {"option": missing})
    planned = task(client, True, **{missing: "missing"}, dest=dest)
    assert (planned["changed"], planned["host"], planned["uri"]) == (True, None, "********")
    assert planned.keys() == task(client).keys()


@pytest.mark.parametrize(
    "path, body",
    [(f"/projects/{SHOP}", {"project": {}}), ("*/databases/*", {"database": {}}), ("*/connection_uri", {})],
)
def test_response_that_lacks_a_field_is_an_error(
    sandbox: Sandbox, client: Client, path: str, body: dict[str, Any]
) -> None:
    sandbox.fault("status", status=200, path=path, body=body)
    with pytest.raises(UnexpectedResponse):
        task(client, project=SHOP)
