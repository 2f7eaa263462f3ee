# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugins, against a sandbox."""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import requests
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import lookup_loader
from ansible.template import Templar

from ansible_collections.clouddb.control.plugins.plugin_utils import _lookup
from ansible_collections.clouddb.control.tests.unit.support.playbook import Playbook
from ansible_collections.clouddb.control.tests.unit.support.resource_task import SHOP
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

BLOG = "red-moon-34567890"
DATABASE = {"project": "shop", "database": "clouddb"}


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": [{"id": SHOP, "name": "shop"}, {"id": BLOG, "name": "blog"}]}


@pytest.fixture(autouse=True)
def account(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDDB_BASE_URL", sandbox.base_url)
    monkeypatch.setenv("CLOUDDB_API_KEY", sandbox.api_key)


def look_up(plugin: str, *terms: Any, **options: Any) -> list[str]:
    loader = DataLoader()
    lookup = lookup_loader.get(f"clouddb.control.{plugin}", loader=loader, templar=Templar(loader))
    return list(lookup.run([*terms], variables={}, **options))


def problem(plugin: str, *terms: Any, **options: Any) -> str:
    """The message of the error."""
    with pytest.raises(_lookup.LookupFailed) as error:
        look_up(plugin, *terms, **options)
    assert issubclass(error.type, AnsibleError) and not error.value.__cause__
    return str(error.value)


def uri_of(sandbox: Sandbox) -> str:
    query = "database_name=clouddb&role_name=clouddb_owner"
    return str(sandbox.api("GET", f"/projects/{SHOP}/connection_uri?{query}")["uri"])


def test_the_connection_string_is_that_of_the_options(sandbox: Sandbox) -> None:
    uri = uri_of(sandbox)
    assert look_up("connection_uri", **DATABASE) == [uri]
    [pooled] = look_up("connection_uri", **DATABASE, pooled=True)
    assert pooled != uri and "pooled=true" in sandbox.requests()[-1]["query"]
    assert "no database 'clouddbb'. Did you mean clouddb?" in problem(
        "connection_uri", **{**DATABASE, "database": "clouddbb"}
    )
    assert "no user 'nobody'" in problem("connection_uri", **DATABASE, user="nobody")
    assert "no branch 'dev'" in problem("connection_uri", **DATABASE, branch="dev")
    assert "has no compute of type read_only" in problem("connection_uri", **DATABASE, read_only="yes")


def test_ids_of_projects(sandbox: Sandbox) -> None:
    assert look_up("project_id", "shop", BLOG) == [SHOP, BLOG]
    assert "there is no project 'shopp'. Did you mean shop?" in problem("project_id", "shopp")
    sandbox.api("POST", "/projects", {"project": {"name": "shop"}})
    assert "'shop' is the id or the name of several" in problem("project_id", "shop")


def test_the_organization_is_that_of_the_option_or_of_the_environment(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem("project_id", "shop", org_id="org-one")
    monkeypatch.setenv("CLOUDDB_ORG_ID", "org-two")
    problem("project_id", "shop")
    sent = [parse_qs(request["query"]).get("org_id", []) for request in sandbox.requests()]
    assert [*dict.fromkeys(org_id for each in sent for org_id in each)] == ["org-one", "org-two"]


@pytest.mark.parametrize(
    ("plugin", "terms", "options", "expected"),
    [
        ("connection_uri", (), {"project": "shop"}, "database: is required. Set a value."),
        ("connection_uri", (), {**DATABASE, "brnach": "dev"}, "brnach: there is no such option. Did you mean branch?"),
        ("connection_uri", (), {**DATABASE, "branch": None}, "branch: must not be null."),
        ("connection_uri", (), {**DATABASE, "branch": " "}, "branch: must not be empty."),
        ("connection_uri", (), {**DATABASE, "branch": 1.1}, "branch: must be text, not the number 1.1. Quote it."),
        ("connection_uri", (), {**DATABASE, "user": date(2026, 1, 2)}, "user: must be text, not the date 2026-01-02."),
        ("connection_uri", (), {**DATABASE, "read_only": "maybe"}, "read_only: must be true or false."),
        ("connection_uri", ("orders",), DATABASE, "terms: the lookup takes options only"),
        ("project_id", (), {}, "project: no name is given."),
        ("project_id", (None,), {}, "project: must not be null."),
        ("project_id", (["shop"],), {}, "project: must be text."),
        ("project_id", ("shop",), {"validate_certs": "nope"}, "validate_certs: must be true or false."),
        (
            "project_id",
            ("shop",),
            {"api_key": " "},
            "api_key: no value is given. Set api_key, or the environment variable",
        ),
        ("project_id", ("shop",), {"api_retries": -1}, "api_retries: must be from 0 to 100, not -1."),
    ],
)
def test_an_option_that_ansible_would_ignore_or_change_is_an_error(
    sandbox: Sandbox, plugin: str, terms: tuple[Any, ...], options: dict[str, Any], expected: str
) -> None:
    assert expected in problem(plugin, *terms, **options)
    assert not sandbox.sent()


@pytest.mark.parametrize("text", ["", "postgresql://app:********@db.example.com/shop", "<html>"])
def test_a_response_without_a_connection_string_is_an_error(sandbox: Sandbox, text: str) -> None:
    sandbox.fault("status", status=200, path="*/connection_uri", body={"uri": text})
    assert "its field 'uri'" in problem("connection_uri", **DATABASE)


def test_secrets_are_registered(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    uri, registered = uri_of(sandbox), set[str]()
    monkeypatch.setattr(_lookup, "register_secrets", registered.update)
    look_up("connection_uri", **DATABASE)
    assert {uri, sandbox.api_key} <= registered and any(each in uri for each in registered - {uri})


def test_an_error_quotes_no_key(sandbox: Sandbox) -> None:
    assert "there is no branch '********'" in problem("connection_uri", **DATABASE, branch=sandbox.api_key)


def test_without_an_account_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOUDDB_BASE_URL")
    monkeypatch.delenv("CLOUDDB_API_KEY")
    assert problem("project_id", "shop").startswith("base_url, api_key: no value is given. Set base_url and api_key")


def test_without_requests_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lookup, "REQUESTS_IMPORT_ERROR", "ImportError: no requests")
    assert requests.__name__ in problem("project_id", "shop")


PLAY = """
- hosts: own
  gather_facts: false
  vars: {url: "{{ lookup('clouddb.control.connection_uri', project='shop', database='clouddb') }}"}
  tasks:
    - name: value
      set_fact: {id: "{{ lookup('clouddb.control.project_id', 'shop') }}", url: "{{ url }}"}
      no_log: true
    - name: both
      assert:
        that:
          - id == query('clouddb.control.project_id', 'shop')[0]
          - url is match('postgresql://clouddb_owner:')
    - name: error
      debug: {msg: "{{ lookup('clouddb.control.project_id', 'shopp') }}"}
      ignore_errors: true
"""


def test_a_playbook(served_sandbox: Sandbox) -> None:
    # ansible-core 2.22 opens a socket below TMPDIR, whose path may have 107 characters.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ran = Playbook(Path(folder, "run"), served_sandbox).run(PLAY, "-vvvv")
    events = [(name, event) for name, event, _result in ran.results]
    assert events == [("value", "ok"), ("both", "ok"), ("error", "failed")], ran.stdout + ran.stderr
    assert "there is no project 'shopp'. Did you mean shop?" in str(ran.results[-1])
    assert (
        uri_of(served_sandbox) not in ran.stdout + ran.stderr and served_sandbox.api_key not in ran.stdout + ran.stderr
    )
