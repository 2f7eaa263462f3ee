# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""connection_info, against a sandbox."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._files import secret_file
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import UnexpectedResponse
from ansible_collections.clouddb.control.plugins.modules import connection_info
from ansible_collections.clouddb.control.tests.unit.support.each_module import sampled
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

OPTIONS: dict[str, Any] = {**defaults_of(connection_info), "project": "shop", "database": "clouddb"}
SetAttributes = Callable[[str], bool]


def task(
    client: Client, check_mode: bool = False, set_attributes: SetAttributes = lambda path: False, **options: Any
) -> dict[str, Any]:
    dest = {"dest": str(options["dest"])} if "dest" in options else {}
    return connection_info.run({**OPTIONS, **options, **dest}, client, check_mode, set_attributes)


@pytest.fixture
def uri(sandbox: Sandbox) -> str:
    query = "database_name=clouddb&role_name=clouddb_owner"
    return str(sandbox.api("GET", f"/projects/{SHOP}/connection_uri?{query}")["uri"])


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "database.url"


def test_secrets_are_returned_only_on_request(client: Client, uri: str) -> None:
    hidden, exposed = task(client), task(client, expose_secrets=True)
    assert (exposed["uri"], exposed["password"] in uri, exposed["port"]) == (uri, True, 5432)
    assert (exposed["user"], exposed["database"], exposed["host"] in uri) == ("clouddb_owner", "clouddb", True)
    assert exposed["password"] not in str(hidden)
    assert {**exposed, "uri": None, "password": None} == {**hidden, "uri": None, "password": None}


def test_the_file_is_written_when_it_differs(client: Client, uri: str, dest: Path) -> None:
    assert (task(client, True, dest=dest)["changed"], dest.exists()) == (True, False)
    assert (task(client, dest=dest)["changed"], dest.read_text()) == (True, uri)
    assert task(client, dest=dest)["changed"] is False


@pytest.mark.parametrize("is_there", [False, True])
def test_no_other_task_compares_or_writes_the_file_meanwhile(
    sandbox: Sandbox, client: Client, uri: str, dest: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """Otherwise, it could report a content that this task overwrites."""
    monkeypatch.setattr(secret_file, "LOCK_TIMEOUT", 0.0)
    if is_there:
        dest.write_text(uri)
    kinds = []

    def run_another_task(path: str) -> bool:
        if path != str(dest):  # the temporary file has been created
            with pytest.raises(ClouddbError) as error:
                task(client, dest=dest)
            kinds.append(error.value.kind)
        return False

    body = {"uri": uri.replace("clouddb_owner", "clouddb_reader")}
    sandbox.fault("status", status=200, path="*/connection_uri", body=body, times=1)
    assert task(client, False, run_another_task, dest=dest)["changed"]
    assert (kinds, dest.read_text()) == (["secret_file"], body["uri"])


def test_attributes_of_a_file_that_stays_are_set(client: Client, uri: str, dest: Path) -> None:
    dest.write_text(uri)
    assert task(client, False, lambda path: path == str(dest), dest=dest)["changed"] is True


def test_a_written_file_whose_attributes_cannot_be_set_is_a_change(client: Client, uri: str, dest: Path) -> None:
    def set_attributes(path: str) -> bool:
        if path == str(dest):
            raise SecretFileError("dest: chattr failed.")
        return False

    with pytest.raises(SecretFileError) as error:
        task(client, False, set_attributes, dest=dest)
    assert (error.value.result, dest.read_text()) == ({"changed": True}, uri)


@pytest.mark.parametrize("missing", ["project", "branch", "database", "user"])
def test_what_does_not_exist_is_an_error_except_in_check_mode(client: Client, dest: Path, missing: str) -> None:
    with pytest.raises(ClouddbError) as error:
        task(client, **{missing: "missing"}, dest=dest)
    assert (error.value.kind, error.value.details) == ("not_found", {"option": missing})
    planned = task(client, True, **{missing: "missing"}, dest=dest)
    assert (planned["changed"], planned["host"], planned["uri"]) == (True, None, "********")
    assert planned.keys() == task(client).keys()


@pytest.mark.parametrize(
    "path, body", [(f"/projects/{SHOP}/branches", {}), ("*/databases/*", {"database": {}}), ("*/connection_uri", {})]
)
def test_response_without_a_field_is_an_error(sandbox: Sandbox, client: Client, path: str, body: Any) -> None:
    sandbox.fault("status", status=200, path=path, body=body)
    with pytest.raises(UnexpectedResponse):
        task(client, project=SHOP)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "null", "<html>502</html>", "postgresql://", "mysql://app:password@host/db"),
        *(f"postgresql://{user}@host/db" for user in ("app", "app:", "app:********", ":password")),
        *(f"postgresql://app:pass{character}word@host/db" for character in "#/?["),
        *(f"postgresql://app:password@{host}/db" for host in ("", "host:99999", "host:abc")),
        *(f"postgresql://app:password@host/{name}" for name in ("db\nOTHER=1", "d" * 5000)),
    ],
)
def test_text_that_is_no_address_is_not_written(sandbox: Sandbox, client: Client, dest: Path, text: str) -> None:
    sandbox.fault("status", status=200, path="*/connection_uri", body={"uri": text})
    dest.write_text("postgresql://app:working@host/db")
    with pytest.raises(UnexpectedResponse) as error:
        task(client, dest=dest)
    assert dest.read_text() == "postgresql://app:working@host/db"
    assert "word" not in str(error.value).replace("the password", "").replace("no password", "")


def test_the_password_is_decoded_and_both_encodings_are_secret(sandbox: Sandbox, client: Client) -> None:
    """The port is that of the address, too."""
    uri = "postgres://app:pass%2Fword@host:6543/db"
    sandbox.fault("status", status=200, path="*/connection_uri", body={"uri": uri})
    result = task(client, expose_secrets=True)
    assert (result["password"], result["port"]) == ("pass/word", 6543)
    # Those that a module registers with ansible-core from 2.22 on.
    assert {uri, "pass/word", "pass%2Fword"} <= client.masker.secrets


@pytest.mark.parametrize("name", [".clouddb-1000.lock", ".clouddb-0-abcdefgh.tmp"])
def test_dest_is_no_file_of_the_collection(sandbox: Sandbox, client: Client, tmp_path: Path, name: str) -> None:
    with pytest.raises(ClouddbError, match="^dest: .*locks and temporary files") as error:
        task(client, dest=tmp_path / name)
    assert (error.value.kind, sandbox.sent(), [*tmp_path.glob(".clouddb*")]) == ("invalid_option", [], [])


class TestComputeOfTheConnection:
    @pytest.mark.parametrize("named, words", [(None, "the default branch"), ("bare", "branch 'bare'")])
    def test_a_branch_without_any_is_named(self, sandbox: Sandbox, client: Client, named: Any, words: str) -> None:
        sandbox.api("POST", f"/projects/{SHOP}/branches", {"branch": {"name": "bare"}, "endpoints": []})
        [compute] = sandbox.api("GET", f"/projects/{SHOP}/endpoints")["endpoints"]
        sandbox.api("DELETE", f"/projects/{SHOP}/endpoints/{compute['id']}")
        sandbox.advance(60)
        with pytest.raises(ClouddbError, match=f"^branch: {words} has no compute. Create one") as error:
            task(client, branch=named)
        assert error.value.as_result()["failure"] == {"kind": "not_found", "option": "branch"}

    @pytest.fixture
    def replica(self, sandbox: Sandbox) -> dict[str, Any]:
        """The read replica of the default branch."""
        path = f"/projects/{SHOP}/endpoints"
        body = {"endpoint": {"branch_id": sandbox.api("GET", path)["endpoints"][0]["branch_id"], "type": "read_only"}}
        compute: dict[str, Any] = sandbox.api("POST", path, body)["endpoint"]
        sandbox.advance(60)
        return compute

    def test_the_pooler_has_a_host_of_its_own(self, client: Client) -> None:
        """As in https://github.com/neondatabase/neonctl/pull/39"""
        direct, pooled = task(client)["host"], task(client, pooled=True)["host"]
        assert pooled == direct.replace(".", "-pooler.", 1)

    def test_the_read_replica_is_that_of_the_branch(self, sandbox: Sandbox, client: Client, replica: Any) -> None:
        """As in https://github.com/neondatabase/neonctl/pull/53"""
        sandbox.api("POST", f"/projects/{SHOP}/branches", {"branch": {"name": "other"}})
        results = [task(client, read_only=True, pooled=pooled) for pooled in (False, True)]
        assert [each["host"].split(".")[0] for each in results] == [replica["id"], f"{replica['id']}-pooler"]
        assert task(client)["host"] != replica["host"]

    def test_a_branch_without_one_is_an_error_except_in_check_mode(self, client: Client) -> None:
        with pytest.raises(ClouddbError, match="^read_only: the branch has no compute of type read_only.") as error:
            task(client, read_only=True)
        assert error.value.as_result()["failure"] == {"kind": "not_found", "option": "read_only"}
        assert task(client, True, read_only=True)["host"] is None

    def test_one_that_is_being_deleted_does_not_count(self, sandbox: Sandbox, client: Client, replica: Any) -> None:
        computes = [{**replica, "current_state": "deleting"}]
        sandbox.fault("status", status=200, path="*/endpoints", body={"endpoints": computes})
        with pytest.raises(ClouddbError, match="^read_only: the branch has no compute of type read_only."):
            task(client, read_only=True)

    def test_several_are_an_error(self, sandbox: Sandbox, client: Client, replica: Any) -> None:
        body = {"endpoint": {"branch_id": replica["branch_id"], "type": "read_only"}}
        sandbox.api("POST", f"/projects/{SHOP}/endpoints", body)
        with pytest.raises(ClouddbError, match=f"^read_only: the branch has several .*: {replica['id']}, ") as error:
            task(client, read_only=True)
        assert error.value.as_result()["failure"] == {"kind": "invalid_option", "option": "read_only"}


def read_by_dotenv(line: str) -> str:
    """The value of C(DATABASE_URL), by the rules of python-dotenv: it has escapes and variables in single quotes, too."""
    found = re.fullmatch(r"DATABASE_URL='((?:\\'|[^'])*)'\n", line)
    assert found
    unescaped = re.sub(r"\\([\\'])", r"\1", found[1])
    return re.sub(r"\$\{[^}]*\}", "", unescaped)


OTHER_CONTENT = ["PORT=80", "DATABASE_URL=old\nPORT=80\n", "# comment", "DATABASE_URLS=old", "https://user:token@host/"]
# What a file may have, in which modes.
KEPT = product(OTHER_CONTENT, [False, True], ["uri", "env", "env_literal"])


class TestFormatEnv:
    @pytest.mark.parametrize(
        "end", ["", "&options=endpoint%3Dep-1", "&a='$HOME'", "&a=${HOME}`id`\\'\\n;#!*", '&a="é" b']
    )
    def test_a_shell_and_dotenv_read_the_same_address(
        self, sandbox: Sandbox, client: Client, uri: str, dest: Path, end: str
    ) -> None:
        """As in https://github.com/prisma/web/issues/1065 and https://github.com/vlucas/phpdotenv/issues/36"""
        sandbox.fault("status", status=200, path="*/connection_uri", body={"uri": uri + end}, times=None)
        assert task(client, True, format="env", dest=dest)["changed"] is True
        results = [task(client, format="env", dest=dest) for _run in range(2)]
        assert [each["changed"] for each in results] == [True, False]
        program = f'. {shlex.quote(str(dest))}; printf %s "$DATABASE_URL"'
        read = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=True, env={"HOME": "/root"})
        assert read.stdout == read_by_dotenv(dest.read_text())
        assert unquote(read.stdout) == unquote(uri + end)
        assert (dest.stat().st_mode & 0o777, results[0].keys()) == (0o600, task(client).keys())

    def test_the_variable_has_another_name(self, client: Client, uri: str, dest: Path) -> None:
        assert "warnings" not in task(client, format="env", dest=dest, variable="PGURL_2")
        assert dest.read_text() == f"PGURL_2='{uri}'\n"

    def test_a_variable_that_is_not_in_the_file_is_warned_of(self, client: Client, dest: Path) -> None:
        result = task(client, dest=dest, variable="PGURL")
        assert (result["changed"], len(result["warnings"]), "warnings" in task(client, dest=dest)) == (True, 1, False)

    @pytest.mark.parametrize("variable", ["", "2ND", "DATABASE-URL", "A B", "É", "A=B\n"])
    def test_one_that_is_no_name_is_refused(self, sandbox: Sandbox, client: Client, variable: str) -> None:
        with pytest.raises(ClouddbError, match="^variable: must be a name") as error:
            task(client, variable=variable)
        assert (error.value.kind, sandbox.sent()) == ("invalid_option", [])

    @pytest.mark.parametrize("content", ["", "DATABASE_URL=old", 'export DATABASE_URL="old"\n', "postgresql://old\n"])
    def test_what_the_module_has_written_is_replaced(self, client: Client, uri: str, dest: Path, content: str) -> None:
        dest.write_text(content)
        assert task(client, format="env", dest=dest)["changed"] is True
        assert dest.read_text() == f"DATABASE_URL='{uri}'\n"
        assert (task(client, dest=dest)["changed"], dest.read_text()) == (True, uri)

    @pytest.mark.parametrize(("content", "check_mode", "form"), sampled(*KEPT, stride=7))
    def test_other_content_stays(self, client: Client, dest: Path, content: str, check_mode: bool, form: str) -> None:
        dest.write_text(content)
        with pytest.raises(ClouddbError, match="or DATABASE_URL and nothing else. The file was not changed."):
            task(client, check_mode, format=form, dest=dest)
        assert dest.read_text() == content

    def test_a_literal_value_has_no_quotes(self, client: Client, uri: str, dest: Path) -> None:
        """As docker run --env-file reads it: https://github.com/docker/cli/issues/3630"""
        results = [task(client, format="env_literal", dest=dest) for _run in range(2)]
        assert ([each["changed"] for each in results], dest.read_text()) == ([True, False], f"DATABASE_URL={uri}\n")


class TestDiff:
    """As in https://github.com/CiscoDevNet/ansible-meraki/issues/131, the old secret must not be shown, either."""

    @pytest.fixture
    def shown(self, uri: str) -> str:
        return uri.replace(unquote(uri.split(":")[2].split("@")[0]), "********")

    def test_a_new_file(self, client: Client, dest: Path, shown: str) -> None:
        planned, written, again = (task(client, check_mode, dest=dest)["diff"] for check_mode in (True, False, False))
        assert planned == written == {"before": {}, "after": {"content": shown}}
        assert again == {"before": {"content": shown}, "after": {"content": shown}}
        none = {"before": {}, "after": {}}
        assert task(client)["diff"] == task(client, True, branch="missing", dest=dest)["diff"] == none

    def test_another_password(self, client: Client, uri: str, dest: Path, shown: str) -> None:
        """As in https://github.com/artefactual-labs/ansible-percona/issues/75"""
        dest.write_text(re.sub(r":[^:@/]+@", ":former-secret@", uri))
        sides = {side: {"content": shown, "password": side} for side in ("old", "new")}
        assert task(client, dest=dest)["diff"] == {"before": sides["old"], "after": sides["new"]}

    def test_another_database_and_format(self, client: Client, uri: str, dest: Path, shown: str) -> None:
        dest.write_text(f'export DATABASE_URL="{uri}-2"\n')
        before, after = f'export DATABASE_URL="{shown}-2"', f"DATABASE_URL='{shown}'"
        diff = {"before": {"content": before}, "after": {"content": after}}
        assert task(client, format="env", dest=dest)["diff"] == diff

    @pytest.mark.parametrize(
        "content",
        [
            "DATABASE_URL=former-secret",
            "postgresql://app@host/db former-secret",
            "postgresql://app:former@secret@host/db",
            "postgresql://app:former/secret@host/db",
            "postgresql://app:x@host/db?a=b@former-secret",
        ],
    )
    def test_other_content_may_be_a_secret(self, client: Client, dest: Path, shown: str, content: str) -> None:
        dest.write_text(content)
        diff = task(client, dest=dest)["diff"]
        assert diff == {"before": {"content": "********"}, "after": {"content": shown}}

    def test_every_secret_is_masked(self, client: Client, dest: Path) -> None:
        dest.write_text("postgresql://a#b:former-secret@host/db?sslpassword=former-secret")
        before = {"content": "postgresql://a#b:********@host/db?sslpassword=********", "password": "old"}
        assert task(client, dest=dest)["diff"]["before"] == before
