# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real main() of every module against the sandbox: what a task gets to see."""

from __future__ import annotations

import runpy
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.clouddb.control.plugins.module_utils import _module
from ansible_collections.clouddb.control.plugins.modules import (
    api_key,
    api_key_info,
    operation_info,
    operation_wait,
    project_info,
)
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import writes
from ansible_collections.clouddb.control.tests.unit.support.module_main import Ended, run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = "wispy-lake-12345678"
MODULES: list[tuple[ModuleType, dict[str, Any]]] = [
    (api_key, {"name": "deploy"}),
    (api_key_info, {}),
    (project_info, {}),
    (operation_info, {"project_id": SHOP}),
    (operation_wait, {"project_id": SHOP, "operation_id": ["done"]}),
]
of_every_module = pytest.mark.parametrize(
    ("module", "options"), MODULES, ids=[module.__name__.rpartition(".")[2] for module, _options in MODULES]
)

pytestmark = pytest.mark.usefixtures("no_delays")


@pytest.fixture
def seed() -> dict[str, Any]:
    operations = [
        {"id": "done", "action": "create_branch", "age": "1h"},
        {"id": "failed", "action": "apply_config", "age": "2h", "status": "failed", "error": "no capacity left"},
        {"id": "going", "action": "start_compute", "age": "1m", "status": "running"},
    ]
    return {"projects": [{"id": SHOP, "compute": False, "operations": operations}]}


def connected(sandbox: Sandbox, **options: Any) -> dict[str, Any]:
    return {"base_url": sandbox.base_url, "api_key": sandbox.api_key, **options}


def assert_documented(module: ModuleType, ended: Ended, when: str) -> None:
    """The result has the fields that RETURN promises for this case, and no others but those of every task."""
    common = {"changed", "invocation", "failed", "msg", "warnings", "exception", "deprecations"}
    documented = yaml.safe_load(module.RETURN)
    promised = {field for field, described in documented.items() if when in described["returned"]}
    assert promised <= set(ended.result)
    assert set(ended.result) - common <= set(documented)


@of_every_module
@pytest.mark.parametrize("check_mode", [False, True], ids=["real", "check mode"])
def test_success_returns_the_documented_fields(
    sandbox: Sandbox, module: ModuleType, options: dict[str, Any], check_mode: bool
) -> None:
    ended = run_main(module, connected(sandbox, **options), check_mode)
    assert ended.success["changed"] is (module is api_key)
    assert_documented(module, ended, "success")
    assert bool(writes(sandbox)) is (module is api_key and not check_mode)
    assert sandbox.api_key not in ended.printed


@of_every_module
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_module_files_run_as_programs(sandbox: Sandbox, module: ModuleType, options: dict[str, Any]) -> None:
    program = SimpleNamespace(main=lambda: runpy.run_module(module.__name__, run_name="__main__"))
    assert not run_main(program, connected(sandbox, **options)).failed


@of_every_module
def test_failure_returns_the_documented_fields(sandbox: Sandbox, module: ModuleType, options: dict[str, Any]) -> None:
    sandbox.fault("status", status=403, times=None)
    ended = run_main(module, connected(sandbox, **options))
    assert ended.failure["status"] == 403
    assert_documented(module, ended, "failure")


def test_operation_info_returns_operations_and_summary(sandbox: Sandbox) -> None:
    result = run_main(operation_info, connected(sandbox, status="failed,running", created_after="90m")).success
    assert [(operation["id"], operation["status"]) for operation in result["operations"]] == [("going", "running")]
    assert result["summary"] == {"total": 1, "by_status": {"running": 1}, "by_action": {"start_compute": 1}}


def test_failed_wait_returns_the_documented_fields(sandbox: Sandbox) -> None:
    operations = [{"id": name, "project_id": SHOP, "extra": 1} for name in ("failed", "going", "done")]
    ended = run_main(operation_wait, connected(sandbox, operations=operations))
    assert ended.failure == {"kind": "wait_failed"}
    assert (ended.result["failed_ids"], ended.result["pending_ids"]) == (["failed"], ["going"])
    assert "no capacity left" in ended.result["msg"]
    assert_documented(operation_wait, ended, "when the wait failed")


def test_timed_out_wait_returns_the_documented_fields(sandbox: Sandbox) -> None:
    ended = run_main(operation_wait, connected(sandbox, project_id=SHOP, timeout=20))
    assert (ended.result["failed_ids"], ended.result["pending_ids"]) == ([], ["going"])
    assert ended.result["msg"].startswith("Timed out after 20 s with 1 of 1 operation unfinished: ")


def test_warnings_are_reported(sandbox: Sandbox) -> None:
    sandbox.fault("unavailable_projects", ids=["lost-sea-45678901"])
    result = run_main(project_info, connected(sandbox)).success
    assert result["unavailable_project_ids"] == ["lost-sea-45678901"]
    assert ["lost-sea-45678901" in str(warning) for warning in result["warnings"]] == [True]


@of_every_module
@pytest.mark.parametrize("slash", ["", "/"], ids=["no slash", "slash"])
def test_connection_options_from_the_environment(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, module: ModuleType, options: dict[str, Any], slash: str
) -> None:
    monkeypatch.setenv("CLOUDDB_BASE_URL", sandbox.base_url + slash)
    monkeypatch.setenv("CLOUDDB_API_KEY", sandbox.api_key)
    ended = run_main(module, options)
    assert not ended.failed, ended.printed
    assert sandbox.api_key not in ended.printed


def test_options_take_precedence_over_the_environment(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDDB_BASE_URL", "https://elsewhere.example.com/api/v2")
    monkeypatch.setenv("CLOUDDB_API_KEY", "another-key")
    assert not run_main(project_info, connected(sandbox)).failed


@pytest.mark.parametrize("source", ["option", "environment"])
def test_key_with_white_space_is_stripped_and_censored(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    padded = f" \t{sandbox.api_key}\r\n"
    options = {"base_url": sandbox.base_url, "name": "deploy"}
    if source == "environment":
        monkeypatch.setenv("CLOUDDB_API_KEY", padded)
    else:
        options["api_key"] = padded
    ended = run_main(api_key, options)
    assert not ended.failed, ended.printed
    assert sandbox.api_key not in ended.printed


@of_every_module
def test_echoed_key_is_censored(sandbox: Sandbox, module: ModuleType, options: dict[str, Any]) -> None:
    told = {"message": f"what is {sandbox.api_key}?", "code": sandbox.api_key, "request_id": sandbox.api_key}
    sandbox.fault("status", status=400, body=told, times=None)
    ended = run_main(module, {**connected(sandbox, **options), "api_key": f" {sandbox.api_key} "})
    assert "what is ********?" in ended.result["msg"]
    assert sandbox.api_key not in ended.printed


def test_key_in_a_response_is_censored(sandbox: Sandbox) -> None:
    sandbox.fault("status", status=200, body={"projects": [{"id": "p", "note": f"made with {sandbox.api_key}"}]})
    ended = run_main(project_info, {**connected(sandbox), "api_key": f"{sandbox.api_key}\n"})
    assert ended.success["projects"][0]["note"] == "made with ********"
    assert sandbox.api_key not in ended.printed


def test_failure_has_the_fields_of_the_error_body(sandbox: Sandbox) -> None:
    sandbox.fault("status", status=403, body={"message": "not your account", "code": "FORBIDDEN", "request_id": "r-1"})
    ended = run_main(project_info, connected(sandbox))
    assert ended.failure == {
        "kind": "http_status",
        "method": "GET",
        "path": "/projects",
        "attempts": 1,
        "status": 403,
        "message": "not your account",
        "code": "FORBIDDEN",
        "request_id": "r-1",
    }
    assert ended.result["msg"] == "GET /projects returned 403 Forbidden: not your account."


@of_every_module
def test_missing_requests_is_named(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, options: dict[str, Any]
) -> None:
    trace = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'requests'"
    given: dict[str, Any] = {}
    fail_json = AnsibleModule.fail_json

    def watched(self: AnsibleModule, **result: Any) -> None:
        given.update(result)
        fail_json(self, **result)

    monkeypatch.setattr(_module, "REQUESTS_IMPORT_ERROR", trace)
    monkeypatch.setattr(AnsibleModule, "fail_json", watched)
    ended = run_main(module, {"base_url": "https://control.example.com/api/v2", "api_key": "bearer-key", **options})
    assert ended.failed
    assert "Failed to import the required Python library (requests)" in ended.result["msg"]
    # How much of the traceback is shown depends on the version and the settings of ansible-core.
    assert given["exception"] == trace
