# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""main() of every module when requests fail: a readable message, structured details, no traceback and no secret."""

from __future__ import annotations

import re
import socket
from types import ModuleType
from typing import Any, get_args

import pytest

from ansible_collections.clouddb.control.plugins.modules import operation_wait
from ansible_collections.clouddb.control.tests.unit.support.attempt_timeouts import time_out_when
from ansible_collections.clouddb.control.tests.unit.support.each_module import SHOP, name_of, of_every_module
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

from clouddb_sandbox import faults  # isort: skip  # the import above extends sys.path


# The fault of the sandbox, and the kind of the failure.
FAILING: list[tuple[dict[str, Any], str]] = [
    ({"kind": "status", "status": 500}, "http_status"),
    ({"kind": "html"}, "unexpected_response"),
    ({"kind": "redirect", "location": "https://elsewhere.example.com/"}, "http_status"),
    ({"kind": "reset"}, "unreachable"),
    ({"kind": "stall", "seconds": 60}, "unreachable"),
    ({"kind": "lost_answer"}, "unreachable"),
    ({"kind": "truncate"}, "unreachable"),
    ({"kind": "malformed"}, "unexpected_response"),
]
HARMLESS: list[dict[str, Any]] = [
    {"kind": "delay", "seconds": 0.01},
    {"kind": "page_limit", "items": 1},
    {"kind": "unavailable_projects", "ids": ["lost-sea-45678901"]},
]

pytestmark = pytest.mark.usefixtures("no_delays")


@pytest.fixture
def seed() -> dict[str, Any]:
    operations = [{"id": name, "action": "create_branch", "age": "1h"} for name in ("a", "b", "done")]
    return {"projects": [{"id": SHOP, "operations": operations}, {}]}


def connected(sandbox: Sandbox, **options: Any) -> dict[str, Any]:
    return {"base_url": sandbox.base_url, "api_key": sandbox.api_key, **options}


def assert_readable_failure(sandbox: Sandbox, outcome: Outcome) -> None:
    """The message is one line of text, the details are structured, and neither has the key or anything of Python's."""
    message = outcome.result["msg"]
    assert re.fullmatch(r"[ -~]{20,400}", message), message
    assert not re.search(r"Traceback|0x[0-9a-f]{6}|Exception|Error\(|urllib3|<class|HTTPConnection", outcome.printed), (
        outcome.printed
    )
    assert sandbox.api_key not in outcome.printed
    assert set(outcome.failure) >= {"kind", "method", "path", "attempts", "request_id"}


def test_every_kind_of_sandbox_fault_is_tested() -> None:
    """Except those that only matter to some modules: faults of writes, and of the project list of an account."""
    of_every_request = [
        fault
        for fault in get_args(get_args(faults.Fault)[0])
        if not issubclass(fault, (faults.WriteFault, faults.RequireOrgIdFault))
    ]
    kinds = {get_args(fault.model_fields["kind"].annotation)[0] for fault in of_every_request}
    assert {fault["kind"] for fault, _kind in FAILING} | {fault["kind"] for fault in HARMLESS} == kinds


@of_every_module
@pytest.mark.parametrize(("fault", "kind"), FAILING, ids=[fault["kind"] for fault, _kind in FAILING])
def test_permanent_errors_fail_readably(
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    options: dict[str, Any],
    fault: dict[str, Any],
    kind: str,
) -> None:
    sandbox.fault(**fault, times=None)
    if fault["kind"] == "stall":
        time_out_when(monkeypatch, lambda attempt: attempt.was_sent)
    outcome = run_main(module, connected(sandbox, **options))
    assert_readable_failure(sandbox, outcome)
    assert outcome.failure["kind"] == kind


@of_every_module
@pytest.mark.parametrize("fault", HARMLESS, ids=[fault["kind"] for fault in HARMLESS])
def test_faults_with_a_usable_response_do_not_fail(
    sandbox: Sandbox, module: ModuleType, options: dict[str, Any], fault: dict[str, Any]
) -> None:
    sandbox.fault(**fault, times=None)
    outcome = run_main(module, connected(sandbox, **options))
    # It does not create a project that the list may lack.
    is_incomplete = (name_of(module), fault["kind"]) == ("project", "unavailable_projects")
    assert outcome.failed is is_incomplete, outcome.printed
    assert len(outcome.result.get("projects", "ab")) >= 2
    if name_of(module) == "operation_info":
        assert len(outcome.result["operations"]) >= 3


@of_every_module
def test_connection_refused(sandbox: Sandbox, module: ModuleType, options: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/api/v2"
    outcome = run_main(module, {**connected(sandbox, **options), "base_url": address, "api_retries": 2})
    assert_readable_failure(sandbox, outcome)
    assert outcome.failure["kind"] == "unreachable"
    # A wait polls again instead of retrying the request.
    assert outcome.failure["attempts"] == (1 if module is operation_wait else 3)


@of_every_module
def test_invalid_key(sandbox: Sandbox, module: ModuleType, options: dict[str, Any]) -> None:
    outcome = run_main(module, {**connected(sandbox, **options), "api_key": "wrong-key-0123456789"})
    assert_readable_failure(sandbox, outcome)
    assert (outcome.failure["kind"], outcome.failure["status"], outcome.failure["attempts"]) == ("unauthorized", 401, 1)
    assert "wrong-key-0123456789" not in outcome.printed


@of_every_module
@pytest.mark.parametrize("body", [{"unexpected": True}, [1, 2], "text"], ids=str)
def test_body_of_another_shape(sandbox: Sandbox, module: ModuleType, options: dict[str, Any], body: Any) -> None:
    sandbox.fault("status", status=200, body=body, times=None)
    outcome = run_main(module, connected(sandbox, **options))
    assert_readable_failure(sandbox, outcome)
    assert outcome.failure["kind"] == "unexpected_response"
