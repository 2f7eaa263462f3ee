# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ControlModule.run(): the task returns the result of run(), or fails with the error that was raised."""

from __future__ import annotations

import errno
import importlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from urllib.parse import quote

import pytest

from ansible_collections.clouddb.control.plugins.module_utils import _errors, _module
from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._file_module import FileModule
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import Unreachable
from ansible_collections.clouddb.control.plugins.module_utils._http.transport import TRACE
from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule, RunFunction
from ansible_collections.clouddb.control.plugins.module_utils._secrets import encodings
from ansible_collections.clouddb.control.plugins.module_utils._untrusted import MAX_MESSAGE_LENGTH
from ansible_collections.clouddb.control.tests.unit.support.module_main import (
    NAMES_NULLS_IN_LISTS,
    Outcome,
    run_main,
    secrets,
)
from ansible_collections.clouddb.control.tests.unit.support.special_files import failing

OPTIONS = {"base_url": "https://control.example.com/api/v2", "api_key": "secret-0123456789"}


def outcome_of(run: RunFunction, check_mode: bool = False, **options: Any) -> Outcome:
    """The outcome of a module with this run(), with the options C(color) and C(shades) and those of files."""

    def main() -> None:
        spec = {"color": {"type": "str"}, "shades": {"type": "list", "elements": "str"}}
        ControlModule(argument_spec=spec, add_file_common_args=True).run(run)

    return run_main(SimpleNamespace(main=main), {**OPTIONS, **options}, check_mode)


def never(params: Mapping[str, Any], client: Client, check_mode: bool) -> NoReturn:
    raise AssertionError("run() was called")


def raising(error: Exception) -> RunFunction:
    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> NoReturn:
        raise error

    return run


def test_failed_tasks_report_warnings_and_no_diff() -> None:
    result = {"warnings": ["a warning"], "diff": {"before": 1, "after": 2}}
    outcome = outcome_of(raising(ClouddbError("unexpected", "failed", result=result)))
    assert outcome.failed and "diff" not in outcome.result
    assert "a warning" in str(outcome.result["warnings"])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        *(({name: None}, name) for name in ("color", "shades", "base_url", "api_key")),
        *([({"shades": ["red", None]}, "shades")] if NAMES_NULLS_IN_LISTS else []),
    ],
    ids=str,
)
def test_null_fails_before_run(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], named: str) -> None:
    monkeypatch.setenv("CLOUDDB_API_KEY", "key-of-the-environment")
    assert outcome_of(never, **options).failure == {"kind": "invalid_option", "option": named}


@pytest.mark.parametrize("api_key", [None, ""])
def test_check_mode_uses_the_environment_for_a_key_to_create(monkeypatch: pytest.MonkeyPatch, api_key: Any) -> None:
    monkeypatch.setenv("CLOUDDB_API_KEY", "key-of-the-environment")
    passed: list[str] = []
    outcome_of(lambda params, client, check_mode: passed.append(client.connection.api_key) or {}, True, api_key=api_key)
    assert passed == ["key-of-the-environment"]


@pytest.mark.parametrize("options", [{}, {"ca_path": None}, {"mode": None}, {"owner": None}, {"shades": []}])
def test_omitted_options_and_those_that_null_omits_are_accepted(options: dict[str, Any]) -> None:
    assert not outcome_of(lambda params, client, check_mode: {"changed": False}, **options).failed


@pytest.mark.skipif(not secrets, reason="only ansible-core from 2.22 on registers secrets")
@pytest.mark.parametrize("fails", [False, True])
def test_secrets_are_registered_and_their_values_returned(fails: bool) -> None:
    """Ansible masks them in all later output, as they are and as they may be in an address."""
    key, uri = "created key+0123456789", "postgres://owner:p%40ss%2Fword@host/db"

    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
        client.masker.hide(key, uri, "short", "*" * 8)
        result = {"key": key, "address": f"https://example.com/?key={quote(key)}", "other": "short p@ss/word"}
        if fails:
            raise ClouddbError("unexpected", "failed", result=result)
        return result

    outcome = outcome_of(run)
    assert (outcome.result["key"], outcome.failed) == (key, fails)
    shown_in_uri = (uri, "p%40ss%2Fword", "p@ss/word")
    quoted = {quote(text, safe) for text in shown_in_uri for safe in ("/", "")}
    assert outcome.registered == {OPTIONS["api_key"], key, quote(key), *shown_in_uri, *quoted}
    for secret in (key, quote(key), "p@ss"):
        assert secret not in outcome.printed


def test_a_key_with_white_space_is_censored_in_the_result() -> None:
    outcome = outcome_of(
        lambda params, client, check_mode: {"echo": client.connection.api_key}, api_key=" secret-0123456789\n"
    )
    assert "echo" in outcome.result and "secret-0123456789" not in outcome.printed


def test_unexpected_errors_fail_the_task_with_the_key_censored() -> None:
    api_key = """odd"key\\with%all+kinds/of='signs'0123456789"""

    headers = {"Authorization": api_key}
    error = RuntimeError(f"{api_key} {json.dumps(api_key)} {quote(api_key, safe='')} {headers}")
    outcome = outcome_of(raising(error), api_key=api_key)
    assert outcome.failure == {"kind": "unexpected", "exception": "RuntimeError"}
    assert outcome.result["msg"].startswith("Unexpected RuntimeError: ****")
    shown = outcome.printed + json.dumps(outcome.result)
    assert [each for each in (*encodings(api_key), "0123456789") if each in shown] == []


@pytest.mark.parametrize("error", [SecretFileError, RuntimeError])
def test_no_text_quotes_a_key_that_the_task_has_created(error: type[Exception]) -> None:
    created = "created-0123456789"

    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> NoReturn:
        client.masker.hide(created)
        # The end of a message would cut the second one.
        raise error(f"{created} {'x' * (MAX_MESSAGE_LENGTH - 60)} {created}")

    result = outcome_of(run)
    assert "********" in result.result["msg"]
    assert created[:10] not in result.printed


def test_texts_within_warnings_and_failures_quote_no_created_key() -> None:
    created = "created-0123456789"

    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
        client.masker.hide(created)
        if params["color"] == "blue":
            return {"key": created, "warnings": [f"not {created}"]}
        details = {"errors": [{"text": f"not {created}", created: 1}]}
        raise ClouddbError("unexpected", "no", details, result={"warnings": [f"not {created}"], "key": created})

    for color, warnings in (("blue", 1), ("red", 2)):
        outcome = outcome_of(run, color=color)
        assert outcome.result["key"] == created
        assert outcome.printed.count("not ********") == warnings
        assert json.dumps(outcome.result).count(created) == 1


def test_unexpected_errors_are_shown_with_their_traceback() -> None:
    ended: list[dict[str, Any]] = []

    class Module(ControlModule):
        def fail_json(self, msg: str, **result: Any) -> None:
            ended.append({"msg": msg, **result})
            super().fail_json(msg, **result)

    def main() -> None:
        Module(argument_spec={}).run(raising(RuntimeError("\x1b" + "x" * 30000)))

    assert run_main(SimpleNamespace(main=main), OPTIONS).failed
    [arguments] = ended
    assert 1000 < len(arguments["msg"]) <= MAX_MESSAGE_LENGTH
    first, *_frames, last = arguments["exception"].split("\n")
    assert (first, last[:14]) == ("Traceback (most recent call last):", "RuntimeError: ")
    assert "\x1b" not in arguments["exception"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"owner": "12345"}, "dest: chown failed: Operation not permitted. Check owner, or set become."),
        ({"group": "12345"}, "dest: chgrp failed: Operation not permitted. Check group, or set become."),
        ({"mode": "0777"}, "dest: chmod failed: Operation not permitted. Check mode, or set become."),
        ({"owner": "no-such-user"}, "dest: chown failed: failed to look up user no-such-user. Check owner."),
    ],
    ids=str,
)
def test_what_ansible_says_about_a_file_can_be_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], message: str
) -> None:
    """The message names the cause and the option, and the file of dest, not the temporary one."""
    caught: list[str] = []

    def run(params: Mapping[str, Any], client: Client, check_mode: bool, set_attributes: Any) -> dict[str, Any]:
        with pytest.raises(SecretFileError) as error:
            set_attributes(str(tmp_path / ".tmp"))
        caught.append(str(error.value))
        return {}

    def main() -> None:
        FileModule(argument_spec={"dest": {"type": "path"}}).run(run)

    (tmp_path / ".tmp").write_text("")
    for name in ("lchown", "chmod"):
        monkeypatch.setattr(os, name, failing(errno.EPERM))
    run_main(SimpleNamespace(main=main), {**OPTIONS, "dest": str(tmp_path / "key"), **options})
    assert caught == [message]


def test_old_python_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    with pytest.raises(SystemExit):
        importlib.reload(_errors)
    result = json.loads(capsys.readouterr().out)
    assert (result["failed"], result["failure"]) == (True, {"kind": "unsupported_python"})
    assert "3.9 or later" in result["msg"] and "3.8.18" in result["msg"]


def test_missing_requests_names_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_module, "REQUESTS_IMPORT_ERROR", "Traceback: No module named 'requests'")
    outcome = outcome_of(never)
    assert f"{sys.executable} -m pip install requests" in outcome.result["msg"]
    assert outcome.failure == {"kind": "missing_library"}


def test_blank_key_does_not_censor_errors_of_ansible() -> None:
    outcome = outcome_of(never, api_key=" ", shade="red")
    assert outcome.failure == {"kind": "invalid_option"}
    assert outcome.result["msg"].startswith("Unsupported parameters for ")
    assert "*" not in outcome_of(never, api_key=" ").result["msg"]


@pytest.mark.parametrize("failure", [None, ClouddbError("unexpected", "failed"), ValueError("unexpected")], ids=repr)
def test_the_result_has_the_requests_that_the_action_plugin_asks_for(failure: Exception | None) -> None:
    def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
        with pytest.raises(Unreachable):
            client.with_deadline(Deadline.after(client.clock, 0)).get("projects")
        if failure:
            raise failure
        return {"changed": False, "given": sorted(params)}

    result = outcome_of(run, **{TRACE: True}).result
    [line] = result.pop(TRACE)
    assert line.startswith("GET /projects timeout ")
    assert TRACE not in str(result)
    assert TRACE not in outcome_of(run).result


def test_a_task_without_requests_returns_none() -> None:
    assert TRACE not in outcome_of(lambda *_arguments: {"changed": False}, **{TRACE: True}).result
