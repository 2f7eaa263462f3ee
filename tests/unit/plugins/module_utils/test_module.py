# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How every module's task ends: with its result, or with the one error that was raised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest import mock
from urllib.parse import quote

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.clouddb.control.plugins.module_utils import _module
from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import encodings
from ansible_collections.clouddb.control.plugins.module_utils._module import Run, connection_argument_spec, run_module
from ansible_collections.clouddb.control.tests.unit.support.module_main import Ended, run_main

OPTIONS = {"base_url": "https://control.example.com/api/v2", "api_key": "secret-0123456789"}


def ended(run: Run, check_mode: bool = False, diff: bool = False, **options: Any) -> Ended:
    """How a module with this run() and an option C(color) of its own ends; an option that is None is not given."""

    def main() -> None:
        spec = connection_argument_spec(color={"type": "str", "default": "blue"})
        run_module(AnsibleModule(argument_spec=spec, supports_check_mode=True), run)

    given = {name: value for name, value in {**OPTIONS, **options}.items() if value is not None}
    return run_main(SimpleNamespace(main=main), given, check_mode, diff)


def without(option: str) -> dict[str, Any]:
    return {option: None}


def never(params: Mapping[str, Any], client: Client, check_mode: bool) -> NoReturn:
    raise AssertionError("run() was called")


def raising(error: ClouddbError) -> Run:
    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> NoReturn:
        raise error

    return run


@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_run_receives_params_client_and_check_mode(check_mode: bool) -> None:
    given: list[Any] = []

    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
        given.extend([params["color"], client.connection, check_mode])
        return {"changed": True, "color": params["color"]}

    result = ended(
        run,
        check_mode,
        base_url=f"{OPTIONS['base_url']}/",
        color="red",
        api_timeout=7,
        api_retries=2,
        validate_certs=False,
    ).success
    assert (result["changed"], result["color"]) == (True, "red")
    color, connection, mode = given
    assert (color, mode) == ("red", check_mode)
    assert (connection.base_url, connection.api_key) == (OPTIONS["base_url"], OPTIONS["api_key"])
    assert (connection.api_timeout, connection.api_retries, connection.validate_certs) == (7.0, 2, False)


def test_connection_defaults() -> None:
    given: list[Any] = []

    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
        given.append(client.connection)
        return {}

    ended(run)
    [connection] = given
    assert (connection.validate_certs, connection.ca_path, connection.api_timeout, connection.api_retries) == (
        True,
        None,
        30.0,
        5,
    )


def test_warnings_are_reported() -> None:
    result = ended(lambda params, client, check_mode: {"changed": False, "warnings": ["mind the gap"]}).success
    # Newer versions of ansible-core send warnings as dictionaries.
    assert "mind the gap" in str(result["warnings"])


@pytest.mark.parametrize("diff", [False, True], ids=["without diff", "diff"])
def test_diff_is_returned_in_diff_mode_only(diff: bool) -> None:
    result = ended(lambda params, client, check_mode: {"diff": {"before": {}, "after": {"a": 1}}}, diff=diff).success
    assert result.get("diff") == ({"before": {}, "after": {"a": 1}} if diff else None)


def test_errors_fail_the_task_with_details() -> None:
    result = ended(raising(ClouddbError("no luck", {"key_ids": [7]}, {"changed": True, "revoked": [6]})))
    assert result.failure == {"kind": "error", "key_ids": [7]}
    assert (result.result["msg"], result.result["changed"], result.result["revoked"]) == ("no luck", True, [6])
    assert "Traceback" not in result.printed


def test_failed_tasks_report_warnings_and_diff() -> None:
    error = ClouddbError("no luck", result={"warnings": ["mind the gap"], "diff": {"before": 1, "after": 2}})
    result = ended(raising(error))
    assert result.failed
    assert "mind the gap" in str(result.result["warnings"])
    assert "diff" not in result.result


def test_invalid_connection_option_fails_before_run() -> None:
    result = ended(never, base_url="http://control.example.com/api/v2")
    assert result.failure == {"kind": "invalid_option", "option": "base_url"}
    assert result.result["msg"].startswith("base_url: plain http")


def test_invalid_module_option_fails_the_same_way() -> None:
    assert ended(raising(InvalidOption("color", "must be blue"))).failure == {
        "kind": "invalid_option",
        "option": "color",
    }


@pytest.mark.parametrize(
    "api_key", ["secret-0123456789", " secret-0123456789\n"], ids=["as it is", "with white space around it"]
)
@pytest.mark.parametrize("fails", [False, True], ids=["result", "error"])
def test_key_is_censored_in_results_and_errors(api_key: str, fails: bool) -> None:
    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
        echo = {"echo": [f"Bearer {client.connection.api_key}"]}
        if fails:
            raise ClouddbError(f"no luck with {client.connection.api_key}", result=echo)
        return echo

    assert "secret-0123456789" not in ended(run, api_key=api_key).printed


def test_unexpected_errors_fail_the_task_with_the_key_censored() -> None:
    api_key = """odd"key\\with%all+kinds/of='signs'0123456789"""

    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> NoReturn:
        raise RuntimeError(
            f"{api_key} {json.dumps(api_key)} {quote(api_key, safe='')} { ({'Authorization': api_key}) }"
        )

    result = ended(run, api_key=api_key)
    assert result.failure == {"kind": "unexpected", "exception": "RuntimeError"}
    assert result.result["msg"].startswith("Unexpected RuntimeError: ****")
    assert not {
        spelling
        for spelling in encodings(api_key)
        if spelling in result.printed or spelling in json.dumps(result.result)[1:-1]
    }
    assert "0123456789" not in result.printed


@pytest.mark.parametrize("option", ["base_url", "api_key"])
def test_environment_variables_are_used(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
        given.append(getattr(client.connection, option))
        return {}

    monkeypatch.setenv("CLOUDDB_BASE_URL", "https://environment.example.com")
    monkeypatch.setenv("CLOUDDB_API_KEY", "key-of-the-environment")
    assert not ended(run).failed
    assert not ended(run, **without(option)).failed
    assert given == [
        OPTIONS[option],
        {"base_url": "https://environment.example.com", "api_key": "key-of-the-environment"}[option],
    ]


@pytest.mark.parametrize("option", ["base_url", "api_key"])
def test_missing_connection_option_is_named(option: str) -> None:
    result = ended(never, **without(option))
    assert result.failed
    assert option in result.result["msg"]


def test_missing_requests_names_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_module, "REQUESTS_IMPORT_ERROR", "Traceback: No module named 'requests'")
    module = mock.create_autospec(AnsibleModule, instance=True)
    module.fail_json.side_effect = SystemExit
    with pytest.raises(SystemExit):
        run_module(module, never)
    told = module.fail_json.call_args.kwargs
    assert "(requests)" in told["msg"] and "install" in told["msg"]
    assert told["exception"] == "Traceback: No module named 'requests'"


def test_key_is_censored_in_warnings() -> None:
    assert (
        OPTIONS["api_key"]
        not in ended(lambda params, client, check_mode: {"warnings": [f"used {OPTIONS['api_key']}"]}).printed
    )


def test_blank_key_does_not_censor_its_error() -> None:
    assert (
        ended(never, api_key=" ").result["msg"]
        == "api_key: the key is empty; set api_key or the environment variable CLOUDDB_API_KEY"
    )
