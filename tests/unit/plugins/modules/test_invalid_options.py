# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid option values: main() of a module fails before any request, and names the option."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http import transport
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import AttemptError
from ansible_collections.clouddb.control.plugins.module_utils._options import NOT_CREATED_ID
from ansible_collections.clouddb.control.tests.unit.support.each_module import module_named
from ansible_collections.clouddb.control.tests.unit.support.module_main import NAMES_NULLS_IN_LISTS, Outcome, run_main

Options = dict[str, Any]
VALID: dict[str, Any] = {"base_url": "https://control.example.com/api/v2", "api_key": "bearer-key-0123456789"}
OF_PROJECT = {"project_id": "p"}
MAIN = {"project": "p", "name": "main"}
ORDERS = {"project": "p", "name": "orders", "owner": "app"}
DEPLOY = {"step": "deploy", "key_id": 1, "fingerprint": "f", "hosts": [], "older_keys": []}
DELETE = {"method": "DELETE", "path": "projects/p/branches/{id}"}

pytestmark = pytest.mark.usefixtures("no_requests")


@pytest.fixture
def no_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the service be unreachable, so that what is refused was refused before any request."""
    monkeypatch.setattr(transport, "run_attempt", Mock(side_effect=AttemptError(None, was_sent=False)))


def run(module: str, options: Options, check_mode: bool = False) -> Outcome:
    return run_main(module_named(module), {**VALID, **options}, check_mode)


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    "module, options, message",
    [
        ("api_key", {"name": " \t"}, "name"),
        ("api_key", {"name": "deploy", "dest": " "}, "dest"),
        ("api_key", {"name": "deploy", "regenerate": "if_lost"}, "regenerate"),
        ("api_key", {"state": "absent", "id": -3}, "id"),
        ("api_key_info", {"fields": []}, "fields"),
        ("api_key_policy", {"allowed": [{"name": ""}]}, "allowed"),
        *([("api_key_policy", {"allowed": [{"name": None}]}, "allowed")] if NAMES_NULLS_IN_LISTS else []),
        ("api_key_policy", {"max_age": 0}, "max_age"),
        ("api_key_policy", {"max_idle": "-1d"}, "max_idle"),
        ("api_key_policy", {"max_keys": 0}, "max_keys"),
        ("api_key_policy", {"max_revocations": 0}, "max_revocations"),
        ("api_key_policy", {"grace": "-1h"}, "grace"),
        ("api_key_policy", {"revoke_kinds": []}, "revoke_kinds"),
        ("project_info", {"name": None}, "name"),
        ("project_info", {"page_size": 0}, "page_size"),
        ("project_info", {"query": {"limit": 5}}, "query"),
        ("project_info", {"fields": [" "]}, "fields"),
        ("operation_info", {"query": {"cursor": "x"}}, "query"),
        ("operation_info", {"project_id": ".."}, "project_id"),
        ("operation_info", {"project_id": "p", "operation_id": "."}, "operation_id"),
        ("operation_info", {"operation_id": "a"}, "project"),
        ("operation_info", {"status": []}, "status"),
        ("operation_info", {"action": []}, "action"),
        ("operation_info", {"status": ["failed", "faild"]}, "status"),
        ("operation_info", {"action": ["create_brnach"]}, "action"),
        ("operation_info", {"created_after": "yesterday"}, "created_after"),
        ("operation_info", {"updated_after": "yesterday"}, "updated_after"),
        ("operation_info", {"max_results": 0}, "max_results"),
        ("operation_info", {"page_size": 0}, "page_size"),
        ("operation_info", {"workers": 33}, "workers"),
        ("operation_info", {"summary_only": True, "max_results": 5}, "max_results"),
        ("operation_info", {"summary_only": True, "fields": ["id"]}, "fields"),
        ("api_request", {"path": "projects", "lock_timeout": -1}, "lock_timeout"),
        ("branch", {**MAIN, "from_timestamp": "yesterday"}, "from_timestamp"),
        ("branch_restore", {**MAIN, "timestamp": "yesterday"}, "timestamp"),
        ("branch_restore", {**MAIN, "source": "main"}, "source"),
        *(("branch", {**MAIN, option: name}, option) for option in ("name", "parent") for name in (".", "..")),
        *(("database", {**ORDERS, option: name}, option) for option in ("project", "owner") for name in (".", "..")),
        ("compute", {"project": "p", "id": ".."}, "id"),
        ("operation_wait", {}, "project"),
        ("operation_wait", {"operation_id": ["a"]}, "project"),
        ("operation_wait", {"operations": [{"id": 7, "project_id": "p"}]}, "operations"),
        ("operation_wait", {"operations": [{"id": "a", "project_id": "p"}, {"id": "b"}]}, "operations"),
        ("operation_wait", {"operations": [{"id": "..", "project_id": "p"}]}, "operations"),
        ("operation_wait", {"project_id": ".", "operation_id": ["a"]}, "project_id"),
        ("operation_wait", {**OF_PROJECT, "operation_id": [".."]}, "operation_id"),
        ("operation_wait", {**OF_PROJECT, "lookback": "a day"}, "lookback"),
        ("operation_wait", {**OF_PROJECT, "timeout": -1}, "timeout"),
        ("operation_wait", {**OF_PROJECT, "failed_grace": "1y"}, "failed_grace"),
        ("operation_wait", {**OF_PROJECT, "interval": 0}, "interval"),
        *(("operation_wait", {**OF_PROJECT, "workers": value}, "workers") for value in (0, True)),
        *(
            ("compute", {"project": "p", "max_cu": value}, "max_cu")
            for value in (True, False, float("inf"), float("nan"), "inf", "nan", "-inf")
        ),
        ("project", {"name": "p", "default_compute": {"max_cu": True}}, "default_compute"),
        # An unquoted 1.10 named the branch 1.1: https://github.com/ansible/ansible/issues/50503
        ("branch", {"project": "p", "name": 1.10}, "name: must be text, not the number 1.1. Quote it."),
        ("branch", {"project": False, "name": "b"}, "project: must be text, not the boolean false. Quote it."),
        ("api_key", {"name": "ci", "dest": 1.10}, "dest: must be text"),
        ("operation_info", {"project_id": "p", "operation_id": ["a", 1.5]}, "operation_id: must be text"),
        ("api_key_policy", {"allowed": [{"name": "a"}, {"name": 1.10}]}, "allowed: name must be text, not the number"),
        ("api_request", {**DELETE, "find": {"match": {"name": 1.10}}}, "find: match.name must be text"),
        ("api_request", {**DELETE, "find": {"match": {"a": {"owner_id": True}}}}, "find: match.owner_id must be text"),
        (
            "project",
            {"name": "p", "default_compute": {"min_cu": 9, "max_cu": 1}},
            "default_compute: min_cu is 9, more than max_cu, which is 1.",
        ),
        (
            "operation_info",
            {"project_id": "my shop"},
            "project_id: 'my shop' is not an id. Ids consist of letters, digits, '-', '_' and '.'. For a name, set project.",
        ),
    ],
)
def test_invalid_value_is_named(module: str, options: Options, message: str, check_mode: bool) -> None:
    """The message begins with the option."""
    outcome = run(module, options, check_mode)
    option, colon, _problem = message.partition(":")
    assert outcome.failure == {"kind": "invalid_option", "option": option}
    assert outcome.result["msg"].startswith(message if colon else f"{option}: ")


@pytest.mark.parametrize(
    "module, options, end",
    [
        ("branch", {**MAIN, "expire_at": "7d"}, " wait. Did you mean expires_at instead of expire_at?"),
        ("branch", {"project": "p", "nmae": "b"}, "name, name_pattern. Did you mean name instead of nmae?"),
        ("branch", {"projekt": "p", "name": "b"}, "arguments: project. Did you mean project instead of projekt?"),
        ("branch", {**MAIN, "colour": "red"}, " wait."),
        ("branch", {**MAIN, "state": "stopped"}, "got: stopped."),
    ],
)
def test_an_option_that_does_not_exist_is_compared_with_those_that_do(module: str, options: Options, end: str) -> None:
    outcome = run(module, options)
    assert outcome.failure == {"kind": "invalid_option"}
    assert outcome.result["msg"].endswith(end)


# In check mode, an earlier task would provide these: see test_main.py.
@pytest.mark.parametrize(
    "module, options, option",
    [
        ("api_key", {"state": "absent", "id": 0}, "id"),
        ("branch", {**MAIN, "parent": ""}, "parent"),
        ("operation_info", {"project_id": None}, "project_id"),
        *([("operation_info", {**OF_PROJECT, "operation_id": [None]}, "operation_id")] if NAMES_NULLS_IN_LISTS else []),
        ("operation_wait", {"operations": [{"id": "", "project_id": "p"}]}, "operations"),
        ("operation_wait", {"operations": [{"id": "a", "project_id": None}]}, "operations"),
        ("operation_wait", {**OF_PROJECT, "operation_id": ["a", ""]}, "operation_id"),
    ],
)
def test_missing_id_is_named(module: str, options: Options, option: str) -> None:
    assert run(module, options).failure == {"kind": "invalid_option", "option": option}


@pytest.mark.parametrize("name", [NOT_CREATED_ID, "None", "null"])
@pytest.mark.parametrize(
    "module, option", [("branch", "name"), ("branch", "parent"), ("database", "owner"), ("database", "project")]
)
def test_what_stands_for_none_is_no_name(module: str, option: str, name: str) -> None:
    options = {**(ORDERS if module == "database" else MAIN), option: name}
    refused = {"kind": "invalid_option", "option": option}
    assert run(module, options).failure == refused
    assert run(module, {**options, "api_retries": 0}, check_mode=True).result.get("failure") != refused


@pytest.mark.parametrize(
    "module, options",
    [
        ("api_key", {}),
        ("api_key", {"state": "absent"}),
        ("api_key", {"state": "absent", "name": "deploy", "id": 7}),
        ("api_key_policy", {"revoke_kinds": ["missing"]}),
        ("api_key_policy", {"allowed": [{"owner": "Ann"}]}),
        ("project_info", {"query": "a word"}),
        ("operation_info", {"project": "p", "project_id": "p"}),
        ("operation_info", {"project_id": "p", "query": {"org_id": "o"}}),
        *(
            ("operation_info", {**OF_PROJECT, "operation_id": "a", **other})
            for other in (
                *({"status": ["failed"]}, {"action": ["create_branch"]}, {"branch_id": "b"}, {"endpoint_id": "e"}),
                *({"created_after": "1h"}, {"updated_after": "1h"}, {"max_results": 1}),
            )
        ),
        ("operation_wait", {"operations": [], "project_id": "p"}),
        ("operation_wait", {"operations": [], "project": "p"}),
        ("operation_wait", {"operations": [], "operation_id": ["a"]}),
        ("operation_wait", {"operations": ["a-word"]}),
        *(
            ("branch", {**MAIN, "backup_schedule": [item]})
            for item in ({"frequency": "daily"}, {"frequency": "weekly", "hour": 3}, {"frequency": "hourly", "hour": 3})
        ),
        ("branch", {"project": "p", "name": "dev", "name_pattern": "pr-*", "state": "absent"}),
        ("branch", {"project": "p", "name_pattern": "pr-*", "new_name": "dev"}),
        ("branch", {**MAIN, "from_timestamp": "1h", "from_lsn": "0/1"}),
        ("branch", {"project": "p"}),
        ("branch_restore", {**MAIN, "timestamp": "1h", "lsn": "0/1"}),
        *(
            ("branch_restore", {**MAIN, "snapshot": "s", option: "1h"})
            for option in ("source", "timestamp", "lsn", "preserve_as")
        ),
        ("project", {}),
        ("snapshot", {"project": "p", "name": "s", "timestamp": "1h", "lsn": "0/1"}),
    ],
)
def test_conflicting_options_fail(module: str, options: Options) -> None:
    assert run(module, options).failure == {"kind": "invalid_option"}


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"step": "roll_back"}, "roll_back but all of the following are missing: key_id, key"),
        ({"hosts": [" "]}, "hosts: must not be empty"),
        ({"max_age": "99999999d"}, "max_age: "),
        ({"key_id": "x"}, "key_id"),
    ],
)
def test_invalid_options_of_the_rotation_are_named(options: Options, problem: str) -> None:
    given = {**VALID, "name": "deploy-{timestamp}", "run": "run", "step": "plan", "confirmations": [], **options}
    outcome = run("api_key_rotation", given)
    assert outcome.failure["kind"] == "invalid_option"
    assert problem in outcome.result["msg"]


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"step": "deploy"}, "key_id, key, fingerprint, hosts, older_keys"),
        ({"step": "commit"}, "key_id"),
        ({"step": "confirm"}, "confirm but all of the following are missing: key_id, key"),
        ({**DEPLOY, "key": ""}, "key: must not be empty"),
        ({"step": "inspect", "record": None}, "record: is required with dest. Set the path of a file for the record."),
        ({"step": "inspect", "attributes": "+i"}, "attributes: is not supported. Omit it."),
        ({"step": "inspect", "mode": "0240"}, "mode: "),
    ],
)
def test_invalid_options_of_the_deployment_are_named(tmp_path: Path, options: Options, problem: str) -> None:
    given = {"run": "run", "host": "web1", "dest": str(tmp_path / "key"), "record": str(tmp_path / "record"), **options}
    # None stands for an omitted option. In check mode, no file shows that an option is invalid.
    present = {name: value for name, value in given.items() if value is not None}
    outcome = run("api_key_deployment", present, True)
    assert outcome.failed and problem in outcome.result["msg"]
