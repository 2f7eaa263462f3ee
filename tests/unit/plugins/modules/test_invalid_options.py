# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid option values: main() of every module fails before any request, with a message that names the option and the valid values."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from ansible.module_utils.basic import FILE_COMMON_ARGUMENTS

from ansible_collections.clouddb.control.plugins.module_utils._http import session
from ansible_collections.clouddb.control.plugins.modules import (
    api_key,
    api_key_deployment,
    api_key_info,
    api_key_policy,
    api_key_rotation,
    api_request,
    operation_info,
    operation_wait,
    project_info,
)
from ansible_collections.clouddb.control.tests.unit.support.each_module import EACH_MODULE, of_every_module
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main

VALID: dict[str, Any] = {"base_url": "https://control.example.com/api/v2", "api_key": "bearer-key-0123456789"}
INFO_MODULES = (api_key_info, project_info, operation_info)

FINITE = "must be a number of seconds from 0 to 31536000"
ABOVE_0 = "must be a number of seconds greater than 0 and up to 31536000"
NOT_EMPTY = "must not be empty"
MOMENT = "must be an ISO 8601 timestamp such as 2026-11-21T08:00:00Z, an age such as 90s, 5m, 24h, 7d or 2w, or an age in seconds"
AGE = "from 0 to 31536000, or a duration such as 90s, 5m, 24h, 7d or 2w"
ENTRY = "Set id and project_id in each entry"
WORKERS = "must be from 1 to 32"


pytestmark = pytest.mark.usefixtures("no_requests")


@pytest.fixture
def no_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests raise an error that no module catches."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a request was sent")

    monkeypatch.setattr(session.requests.Session, "request", refuse)


@of_every_module
@pytest.mark.parametrize(
    "option, value, part",
    [
        ("base_url", "", "environment variable CLOUDDB_BASE_URL"),
        ("base_url", "control.example.com/api/v2", "the scheme must be https"),
        ("base_url", "ftp://control.example.com/api/v2", "the scheme must be https"),
        ("base_url", "http://control.example.com/api/v2", "plain http would expose the key"),
        ("base_url", "https://", "has no valid host"),
        ("base_url", "https://[::1/api/v2", "not an address"),
        ("base_url", "https://user:password@control.example.com/api/v2", "must not contain a user or a password"),
        ("base_url", "https://control.example.com/api/v2?x=1", "must not contain '?'"),
        ("api_key", " \n", "environment variable CLOUDDB_API_KEY"),
        ("api_key", "two words", "contains white space"),
        ("api_key", "Schlüssel", "other than visible ASCII"),
        ("ca_path", "/nowhere/ca.pem", "/nowhere/ca.pem does not exist"),
        ("api_timeout", 0, ABOVE_0),
        ("api_timeout", -1, ABOVE_0),
        ("api_timeout", "nan", ABOVE_0),
        ("api_timeout", "inf", ABOVE_0),
        ("api_timeout", 1e12, ABOVE_0),
        ("api_retries", -1, "must be from 0 to 100, not -1"),
    ],
)
def test_invalid_connection_option_is_named(
    module: ModuleType, options: dict[str, Any], option: str, value: Any, part: str
) -> None:
    outcome = run_main(module, {**VALID, **options, option: value})
    assert outcome.failure == {"kind": "invalid_option", "option": option}
    assert outcome.result["msg"].startswith(f"{option}: ")
    assert part in outcome.result["msg"]
    assert "password@" not in outcome.result["msg"]
    key = value if option == "api_key" else VALID["api_key"]
    assert key == " \n" or key not in str(outcome.result)


@pytest.mark.parametrize(
    "module, options, option, part",
    [
        (api_key, {"name": ""}, "name", NOT_EMPTY),
        (api_key, {"name": " \t"}, "name", NOT_EMPTY),
        (api_key, {"name": "deploy", "dest": " "}, "dest", NOT_EMPTY),
        (api_key, {"name": "deploy", "regenerate": "if_lost"}, "regenerate", "if_lost requires dest"),
        (api_key, {"state": "absent", "name": ""}, "name", NOT_EMPTY),
        (api_key, {"state": "absent", "id": -3}, "id", "must be 1 or more, not -3"),
        (api_key_info, {"name": " "}, "name", NOT_EMPTY),
        (project_info, {"name": ""}, "name", NOT_EMPTY),
        (project_info, {"name": None}, "name", "must not be null"),
        (project_info, {"region_id": " "}, "region_id", NOT_EMPTY),
        (project_info, {"page_size": 0}, "page_size", "must be 1 or more, not 0"),
        (project_info, {"query": {"limit": 5}}, "query", "All pages are fetched anyway"),
        (operation_info, {"query": {"limit": 5}}, "query", "All pages are fetched anyway"),
        (project_info, {"query": {"cursor": "x"}}, "query", "All pages are fetched anyway"),
        (project_info, {"query": {"search": None}}, "query", "must be a string, a number"),
        (project_info, {"query": "{1: 'a', 'b': 'c'}"}, "query", "the name 1 must be a string"),
        (operation_info, {"project_id": ".."}, "project_id", "'..' is not an id"),
        (operation_info, {"project_id": "p", "operation_id": "."}, "operation_id", "'.' is not an id"),
        (operation_info, {"status": ["failed", ""]}, "status", NOT_EMPTY),
        (operation_info, {"action": [" "]}, "action", NOT_EMPTY),
        *(
            (operation_info, {"created_after": text}, "created_after", MOMENT)
            for text in (
                "",
                "yesterday",
                "5 years",
                "-1h",
                -24,
                1763712000,
                True,
                ["1h"],
                "2026-13-01",
                "2026-11-21T25:00Z",
            )
        ),
        (operation_info, {"max_results": 0}, "max_results", "must be 1 or more, not 0"),
        (operation_info, {"page_size": 0}, "page_size", "must be 1 or more, not 0"),
        (operation_info, {"status": []}, "status", "must not be empty. Omit the option to return all operations."),
        (operation_info, {"action": []}, "action", "must not be empty. Omit the option to return all operations."),
        (operation_info, {"workers": 0}, "workers", WORKERS),
        (operation_info, {"workers": 33}, "workers", WORKERS),
        *(
            (
                operation_wait,
                {"operations": [{"id": "a", "project_id": "p"}, entry]},
                "operations",
                f"entry 1 has no valid {field}. {ENTRY}",
            )
            for entry, field in [
                ({"project_id": "p"}, "id"),
                ({"id": 7, "project_id": "p"}, "id"),
                ({"id": "..", "project_id": "p"}, "id"),
                ({"id": "b"}, "project_id"),
                ({}, "id"),
            ]
        ),
        (operation_wait, {"project_id": " "}, "project_id", NOT_EMPTY),
        (operation_wait, {"project_id": ".", "operation_id": ["a"]}, "project_id", "'.' is not an id"),
        (operation_wait, {"project_id": "p", "operation_id": [".."]}, "operation_id", "'..' is not an id"),
        (operation_wait, {"project_id": "p", "lookback": -1}, "lookback", FINITE),
        (operation_wait, {"project_id": "p", "timeout": -1}, "timeout", FINITE),
        (operation_wait, {"project_id": "p", "timeout": "nan"}, "timeout", FINITE),
        (operation_wait, {"project_id": "p", "timeout": "inf"}, "timeout", FINITE),
        (operation_wait, {"project_id": "p", "timeout": "soon"}, "timeout", f"{AGE}, not 'soon'"),
        (operation_wait, {"project_id": "p", "timeout": "366d"}, "timeout", AGE),
        (operation_wait, {"project_id": "p", "timeout": True}, "timeout", AGE),
        (operation_wait, {"project_id": "p", "timeout": [300]}, "timeout", AGE),
        (operation_wait, {"project_id": "p", "lookback": "a day"}, "lookback", AGE),
        (operation_wait, {"project_id": "p", "failed_grace": "1y"}, "failed_grace", AGE),
        (operation_wait, {"project_id": "p", "interval": "0s"}, "interval", ABOVE_0),
        (
            operation_info,
            {"summary_only": True, "max_results": 5},
            "max_results",
            "cannot be combined with summary_only",
        ),
        (operation_info, {"summary_only": True, "fields": ["id"]}, "fields", "cannot be combined with summary_only"),
        *((module, {"fields": value}, "fields", NOT_EMPTY) for module in INFO_MODULES for value in ([], "", [" "])),
        (api_key_policy, {"allowed": []}, "allowed", NOT_EMPTY),
        (api_key_policy, {"allowed": [{"name": ""}]}, "allowed", "an entry has no name"),
        (api_key_policy, {"allowed": [{"name": "deploy"}, {"name": None}]}, "allowed", "name must not be null"),
        (api_key_policy, {"max_age": 0}, "max_age", "greater than 0"),
        (api_key_policy, {"max_age": "soon"}, "max_age", "a duration such as"),
        (api_key_policy, {"max_idle": "-1d"}, "max_idle", "a duration such as"),
        (api_key_policy, {"max_keys": 0}, "max_keys", "must be 1 or more"),
        (api_key_policy, {"max_revocations": 0}, "max_revocations", "must be 1 or more"),
        (api_key_policy, {"grace": "-1h"}, "grace", "a duration such as"),
        (api_key_policy, {"revoke_kinds": []}, "revoke_kinds", NOT_EMPTY),
        (operation_wait, {"project_id": "p", "interval": 0}, "interval", ABOVE_0),
        (operation_wait, {"project_id": "p", "interval": -5}, "interval", ABOVE_0),
        (operation_wait, {"project_id": "p", "failed_grace": -1}, "failed_grace", FINITE),
        (operation_wait, {"project_id": "p", "workers": 0}, "workers", WORKERS),
        (operation_wait, {"project_id": "p", "workers": 33}, "workers", WORKERS),
    ],
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_invalid_value_is_named(
    module: ModuleType, options: dict[str, Any], option: str, part: str, check_mode: bool
) -> None:
    assert_named(module, options, option, part, check_mode)


# In check mode, an earlier task would provide these: see test_main.py.
@pytest.mark.parametrize(
    "module, options, option, part",
    [
        (api_key, {"state": "absent", "id": 0}, "id", "must be 1 or more, not 0"),
        (project_info, {"project_id": ""}, "project_id", NOT_EMPTY),
        (operation_info, {"project_id": ""}, "project_id", NOT_EMPTY),
        (operation_info, {"project_id": "p", "operation_id": ""}, "operation_id", NOT_EMPTY),
        (operation_info, {"branch_id": ""}, "branch_id", NOT_EMPTY),
        (operation_info, {"endpoint_id": ""}, "endpoint_id", NOT_EMPTY),
        (operation_wait, {"operations": [{"id": "", "project_id": "p"}]}, "operations", "entry 0 has no valid id"),
        (
            operation_wait,
            {"operations": [{"id": "a", "project_id": None}]},
            "operations",
            "entry 0 has no valid project",
        ),
        (operation_wait, {"project_id": "p", "operation_id": ["a", ""]}, "operation_id", NOT_EMPTY),
    ],
)
def test_missing_id_is_named(module: ModuleType, options: dict[str, Any], option: str, part: str) -> None:
    assert_named(module, options, option, part)


def assert_named(module: ModuleType, options: dict[str, Any], option: str, part: str, check_mode: bool = False) -> None:
    outcome = run_main(module, {**VALID, **options}, check_mode)
    assert outcome.failure == {"kind": "invalid_option", "option": option}
    assert outcome.result["msg"].startswith(f"{option}: ")
    assert part in outcome.result["msg"]


OMITTED = object()
# What a task needs so that all other options, set to null one by one, reach the module.
REQUIRED_OPTIONS: list[tuple[ModuleType, dict[str, Any]]] = [
    *EACH_MODULE,
    (api_key_deployment, {"step": "inspect", "run": "r", "consumer": "web1"}),
    (api_key_rotation, {"step": "plan", "name": "deploy-{timestamp}", "run": "r", "evidence": []}),
]
# Null means an omitted option where it can mean nothing else.
MAY_BE_NULL = {"ca_path", *FILE_COMMON_ARGUMENTS}


def specs(module: ModuleType) -> dict[str, dict[str, Any]]:
    with mock.patch.object(module, "ControlModule", side_effect=SystemExit) as created, pytest.raises(SystemExit):
        module.main()
    spec: dict[str, dict[str, Any]] = created.call_args.kwargs["argument_spec"]
    return spec


def nullable(module: ModuleType, option: str) -> bool:
    # Evidence can be gathered without a key of the administrator.
    return option in MAY_BE_NULL or (module is api_key_deployment and option == "api_key")


def is_refused_by_ansible(spec: dict[str, Any], value: Any) -> bool:
    """Whether Ansible itself refuses null: it is neither of the type nor one of the choices of an option with a value."""
    has_value = spec.get("required") or spec.get("default") is not None
    typed = spec["type"] in ("bool", "int", "float", "dict", "list") or "choices" in spec
    return value is None and bool(has_value and typed)


# Options that another option requires, or that contradict it.
FURTHER_OPTIONS: dict[str, dict[str, Any]] = {
    "id": {"state": "absent", "name": OMITTED},
    "operations": {"project_id": OMITTED, "operation_id": OMITTED},
}
NULLS = [
    (module, {**options, option: value}, option, value is None)
    for module, options in REQUIRED_OPTIONS
    for option, spec in specs(module).items()
    for value in ([None, ["x", None]] if spec["type"] == "list" else [None])
    if not nullable(module, option) and not is_refused_by_ansible(spec, value)
]


@pytest.mark.parametrize("module, options, option, is_null", NULLS)
def test_null_is_named(module: ModuleType, options: dict[str, Any], option: str, is_null: bool) -> None:
    given = {**VALID, **options, **FURTHER_OPTIONS.get(option, {}), option: options[option]}
    outcome = run_main(module, {name: value for name, value in given.items() if value is not OMITTED})
    if outcome.result["msg"].startswith("Elements value for option"):
        # Ansible refuses null among dictionaries itself, with a message that names the option.
        assert f"'{option}'" in outcome.result["msg"]
        return
    assert outcome.failure == {"kind": "invalid_option", "option": option}
    assert outcome.result["msg"] == (
        f"{option}: must not be null. Set a value, or omit the option with default(omit)."
        if is_null
        else f"{option}: must not contain null. Leave out items without a value."
    )


# What Python, or some version of Ansible, takes for a number.
NOT_NUMBERS: dict[str, list[Any]] = {
    "float": [True, False, "１２", "1_0", "", "many", "1.2.3", {"a": 1}],
    "int": [True, False, "１２", "1_0", "", "many", 1.0, 1.5, "1.0", "1e1", "0x1", "- 1", {"a": 1}],
    "raw": [True, False, "１２", "1_0", "１２s", "1_0s", "", "soon", {"a": 1}],
}


def with_other_numbers(spec: dict[str, Any]) -> list[Any]:
    """Values of the option that have one of NOT_NUMBERS in place of a number."""
    is_list = spec["type"] == "list"
    values = list(NOT_NUMBERS.get(spec.get("elements", "str") if is_list else spec["type"], ()))
    for name, suboption in spec.get("options", {}).items():
        values += [{"name": "ci", name: value} for value in with_other_numbers(suboption)]
    return [[value] for value in values] if is_list else values


NUMBERS = [
    (module, options, option, value)
    for module, options in REQUIRED_OPTIONS
    for option, spec in specs(module).items()
    for value in with_other_numbers(spec)
]


@pytest.mark.parametrize("module, options, option, value", NUMBERS)
def test_only_plain_numbers_are_numbers(module: ModuleType, options: dict[str, Any], option: str, value: Any) -> None:
    given = {**VALID, **options, **FURTHER_OPTIONS.get(option, {}), option: value}
    outcome = run_main(module, {name: value for name, value in given.items() if value is not OMITTED})
    assert outcome.failure == {"kind": "invalid_option", "option": option}
    assert outcome.result["msg"].startswith(f"{option}: ")


def test_every_number_is_tested() -> None:
    assert {
        (api_key, "id"),
        (api_key, "api_timeout"),
        (api_key_policy, "allowed"),
        (api_key_policy, "max_age"),
        (api_request, "status_code"),
    } <= {(module, option) for module, _options, option, _value in NUMBERS}


@pytest.mark.parametrize(
    "module, options, problem",
    [
        (
            api_key,
            {"state": "absent", "id": True},
            "id: must be an integer of the digits 0 to 9, such as 12, not a boolean.",
        ),
        (
            api_key_policy,
            {"allowed": [{"name": "ci", "max_keys": "1_0"}]},
            "allowed: max_keys must be an integer of the digits 0 to 9, such as 12, not '1_0'.",
        ),
        (
            api_request,
            {"path": "projects", "status_code": "200,1_0"},
            "status_code: must be an integer of the digits 0 to 9, such as 12, not '1_0'.",
        ),
        (api_key_info, {"api_timeout": True}, "api_timeout: must be a number such as 12 or 2.5, not a boolean."),
    ],
)
def test_message_about_a_number(module: ModuleType, options: dict[str, Any], problem: str) -> None:
    assert run_main(module, {**VALID, **options}).result["msg"] == problem


@pytest.mark.parametrize(
    "module, options, option, value, expected",
    [
        *((api_key, {"state": "absent"}, "id", value, 12) for value in (12, "12", "+12", " 12\n", "0012")),
        *((api_key_info, {}, "api_timeout", value, 2.5) for value in (2.5, "2.5", "+2.5", " 2.5\n", "25e-1")),
        (api_key_info, {}, "api_timeout", 2, 2.0),
        (api_request, {"path": "projects"}, "status_code", "200, 404", [200, 404]),
        (api_request, {"path": "projects"}, "status_code", 404, [404]),
    ],
)
def test_numbers_and_their_texts_are_numbers(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, options: dict[str, Any], option: str, value: Any, expected: Any
) -> None:
    passed: list[Any] = []

    def run(params: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        passed.append(params[option])
        return {"changed": False}

    monkeypatch.setattr(module, "run", run)
    assert not run_main(module, {**VALID, **options, option: value}).failed
    assert passed == [expected]


@of_every_module
def test_null_of_an_optional_connection_option_is_an_omitted_one(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(module, "run", lambda *args, **kwargs: {"changed": False})
    file_options = dict.fromkeys(("mode", "owner", "group")) if module is api_key else {}
    assert not run_main(module, {**VALID, **options, "ca_path": None, **file_options}).failed


@pytest.mark.parametrize("module, options", [(operation_wait, {}), (api_request, {"path": "projects"})])
def test_message_about_an_unsupported_option_omits_internal_options(
    module: ModuleType, options: dict[str, Any]
) -> None:
    message = run_main(module, {**VALID, **options, "operation_ids": []}).result["msg"]
    assert "operation_ids. Supported parameters include: a" in message
    assert "_state" not in message
    assert "_stop_when" not in message


@pytest.mark.parametrize(
    "module, options, parts",
    [
        (api_key, {}, ["state is present", "name"]),
        (api_key, {"state": "absent"}, ["state is absent", "name, id"]),
        (api_key, {"state": "absent", "name": "deploy", "id": 7}, ["mutually exclusive: name|id"]),
        (api_key, {"id": 7}, ["state is present", "name"]),
        (api_key, {"state": "gone", "name": "deploy"}, ["state must be one of: present, absent"]),
        (api_key, {"name": "deploy", "regenerate": "sometimes"}, ["regenerate must be one of: never, if_lost, always"]),
        (api_key, {"state": "absent", "id": "seven"}, ["id: must be an integer", "not 'seven'"]),
        (api_key_policy, {"revoke_kinds": ["missing"]}, ["revoke_kinds", "unknown, expired, idle, never_used"]),
        (api_key_policy, {"allowed": ["deploy"]}, ["dictionary requested"]),
        (api_key_policy, {"allowed": [{"owner": "Ann"}]}, ["name", "allowed"]),
        (project_info, {"page_size": "many"}, ["page_size: must be an integer", "not 'many'"]),
        (project_info, {"query": "a word"}, ["'query'", "dict"]),
        (project_info, {"projectid": "p"}, ["Unsupported parameters", "projectid"]),
        (operation_info, {"operation_id": "a"}, ["project: is missing"]),
        (operation_info, {"project_id": "p", "query": {"org_id": "o"}}, ["mutually exclusive: project_id|query"]),
        *(
            (
                operation_info,
                {"project_id": "p", "operation_id": "a", option: value},
                [f"mutually exclusive: operation_id|{option}"],
            )
            for option, value in [
                ("status", ["failed"]),
                ("action", ["create_branch"]),
                ("branch_id", "b"),
                ("endpoint_id", "e"),
                ("created_after", "1h"),
                ("max_results", 1),
            ]
        ),
        (operation_wait, {}, ["project: is missing"]),
        (operation_wait, {"operation_id": ["a"]}, ["project: is missing"]),
        (operation_wait, {"operations": [], "project_id": "p"}, ["mutually exclusive: operations|project|project_id"]),
        (operation_wait, {"operations": [], "operation_id": ["a"]}, ["mutually exclusive: operations|operation_id"]),
        (operation_wait, {"operations": ["a-word"]}, ["operations", "dict"]),
    ],
)
def test_conflicting_options_are_named(module: ModuleType, options: dict[str, Any], parts: list[str]) -> None:
    outcome = run_main(module, {**VALID, **options})
    assert outcome.failure["kind"] == "invalid_option"
    assert [part for part in parts if part not in outcome.result["msg"]] == [], outcome.result["msg"]


def test_null_in_a_list_of_dictionaries_is_named() -> None:
    outcome = run_main(operation_wait, {**VALID, "operations": [None]})
    assert outcome.failure == {"kind": "invalid_option", "option": "operations"}
    assert outcome.result["msg"] == "operations: must not contain null. Leave out items without a value."


@of_every_module
@pytest.mark.parametrize("missing", ["base_url", "api_key"])
def test_connection_options_are_required(module: ModuleType, options: dict[str, Any], missing: str) -> None:
    outcome = run_main(module, {**{name: value for name, value in VALID.items() if name != missing}, **options})
    assert outcome.failure == {"kind": "invalid_option", "option": missing}
    assert outcome.result["msg"] == (
        f"{missing}: no value is given. "
        f"Set {missing}, or the environment variable CLOUDDB_{missing.upper()} on the machine that sends the requests."
    )
