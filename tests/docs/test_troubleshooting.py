# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection emits every message in the guides on troubleshooting."""

from __future__ import annotations

import re
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest
from blocks import blocks_of
from conftest import PROJECTS
from replacements import MESSAGES_GUIDES
from transcript import ANYTHING
from workspace import CHECKOUT

from ansible_collections.clouddb.control.plugins.module_utils import _module as module_run
from ansible_collections.clouddb.control.plugins.module_utils._files import secret_file
from ansible_collections.clouddb.control.plugins.module_utils._http import session
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._rotation.record import COMMITTED, KnownKey, Record
from ansible_collections.clouddb.control.plugins.modules import (
    api_key,
    api_key_deployment,
    api_key_policy,
    api_key_rotation,
    api_request,
    branch,
    branch_restore,
    database,
    operation_info,
    operation_wait,
    project,
    project_info,
)
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.http.test_failures import certificate_error
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import API_KEY, Sandbox, running_sandbox
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import ScriptedService, scripted_service

SHOP = "wispy-lake-12345678"
ROTATION = {"name": "deploy-{timestamp}", "run": "run", "confirmations": []}
PLAN = {"step": "plan", **ROTATION}
UNRECORDED = {"foreign_key": True, "hosts": ["web1"], "max_age": 0, "inspected": {"web1": {}}}
HOSTS = {"host": "web1", "hosts": ["web1", "web2"], "older_keys": [], "host_lists": []}
DEPLOY = {"step": "deploy", "run": "run", **HOSTS, "key": "the-secret", "key_id": 1, "fingerprint": "none"}
FILES = {"dest": "web1.key", "record": "web1.rotation"}
CREATE_BRANCH = {"method": "POST", "path": f"projects/{SHOP}/branches", "body": {"branch": {"name": "preview"}}}
FIND_BRANCH = {**CREATE_BRANCH, "find": {"list": "branches", "match": {"name": "preview"}}}
CHANGE_BRANCH = {**FIND_BRANCH, "method": "PATCH", "path": f"projects/{SHOP}/branches/{{id}}"}
RENAME_BRANCH = {**CHANGE_BRANCH, "body": {"branch": {"name": "review"}}, "timeline": [[0, "finished"]]}
MISSPELT_BRANCH = {**CHANGE_BRANCH, "method": "DELETE", "find": {"list": "branches", "match": {"nmae": "preview"}}}
LOWER_CASE = {"kind": "normalized_name", "lower_case": True, "method": "POST"}
IGNORED = {"kind": "ignored_change", "method": "PATCH"}
# Without a compute, and ready at once.
READY_BRANCH = {"body": {"branch": {"name": "preview"}, "endpoints": []}, "timeline": [[0, "finished"]], "timeout": 5}
PR_1 = {"name": "PR-1"}
UPPER_CASE = {"body": {"branch": PR_1, "endpoints": []}, "find": {"list": "branches", "match": PR_1}}
UNKNOWN_OPERATION = {"operations": [{"id": "op", "project_id": SHOP}]}
CONTROLLER_FILES = [
    *CHECKOUT.glob("roles/*/tasks/*.yml"),
    *CHECKOUT.glob("plugins/action/*.py"),
    CHECKOUT / "plugins" / "module_utils" / "_errors.py",
    CHECKOUT / "roles" / "sandbox" / "vars" / "main.yml",
    CHECKOUT / "roles" / "sandbox" / "files" / "background.py",
]


def shown_messages() -> list[str]:
    """The messages in the guides, without their line breaks; an empty line separates those of a block."""
    blocks = [block for guide in MESSAGES_GUIDES for block in blocks_of(guide)]
    assert {block.language for block in blocks} == {"text"}
    return [" ".join(message.split()) for block in blocks for message in block.content.split("\n\n")]


def pattern(message: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, message.split(ANYTHING))))


# Situations that produce the messages: the module, its options, and a fault to inject.
CASES: list[tuple[ModuleType, dict[str, Any], dict[str, Any] | None]] = [
    (project_info, {"base_url": None, "api_key": None}, None),
    (project_info, {"base_url": "http://127.0.0.1:9/api/v2"}, None),
    (project_info, {"api_key": f"{API_KEY}\n{API_KEY}"}, None),
    (project_info, {"api_key": f"{API_KEY}\u200b{API_KEY}"}, None),
    (project_info, {"api_timeout": 0.05}, {"kind": "stall", "seconds": 5}),
    (project_info, {"api_key": "no-key-of-this-account"}, None),
    (operation_info, {"project_id": "shop"}, None),
    (project_info, {}, {"kind": "html"}),
    (project_info, {}, {"kind": "status", "status": 403, "body": ""}),
    (project_info, {}, {"kind": "require_org_id"}),
    (project_info, {}, {"kind": "status", "status": 404}),
    (project_info, {}, {"kind": "status", "status": 429}),
    (api_key, {"name": "busy"}, {"kind": "status", "status": 423, "method": "POST"}),
    (project_info, {}, {"kind": "unavailable_projects", "ids": [SHOP]}),
    (api_key, {"name": "CI"}, LOWER_CASE),
    (api_key, {"name": "deploy", "dest": "deploy.key"}, None),
    (api_key, {"name": "deploy", "dest": "refused.key"}, None),
    (api_key, {"name": "deploy", "dest": "app.env"}, None),
    (api_key, {"name": "deploy", "regenerate": "always"}, {"kind": "lost_answer", "method": "POST"}),
    (api_key, {"name": "deploy", "state": "absent", "second_key": True}, None),
    (api_key, {"name": "deploy", "second_key": True}, None),
    (api_key, {"name": "deploy", "state": "absent", "is_own": True}, {"kind": "lost_answer", "method": "DELETE"}),
    (api_key, {"name": "deploy", "state": "absent", "is_own": True, "listed_late": True, "allow_multiple": True}, None),
    (api_key_policy, {"action": "revoke"}, None),
    (api_key_policy, {"action": "revoke", "own_key": "nobody"}, None),
    (api_key, {"name": "other", "dest": "deploy's.key"}, None),
    (api_key, {"name": "other", "dest": "foreign.key"}, None),
    (api_key_rotation, {**PLAN, "play_hosts": ["web2"], "inspected": {"web1": FILES}}, None),
    (api_key_rotation, {**PLAN, "foreign_key": True}, None),
    (api_key_rotation, {**PLAN, **UNRECORDED}, None),
    (api_key_rotation, {"step": "revoke", **ROTATION, "play_hosts": ["web1"], "unused_key": True}, None),
    (api_key_rotation, {"step": "roll_back", **ROTATION, "key_id": 1, "key": "the-secret"}, None),
    (api_key_deployment, DEPLOY, None),
    (api_key_deployment, {**DEPLOY, "host": "web2", "record": "web1.rotation"}, None),
    (project_info, {"name": "shpo", "required": True}, None),
    (operation_info, {"project": "shpo"}, None),
    (api_request, {**CREATE_BRANCH, "lock_timeout": 1}, {"kind": "status", "status": 423, "method": "POST"}),
    (api_request, CREATE_BRANCH, {"kind": "lost_answer", "method": "POST"}),
    (api_request, FIND_BRANCH, {"kind": "reset", "method": "POST"}),
    (api_request, FIND_BRANCH, {"kind": "status", "status": 409, "method": "POST"}),
    (api_request, {**FIND_BRANCH, **READY_BRANCH, **UPPER_CASE}, LOWER_CASE),
    (api_request, {**FIND_BRANCH, "timeline": [[0, "failed"]], "branch": "existing"}, None),
    (api_request, {**FIND_BRANCH, **READY_BRANCH, "branch": "deleted"}, None),
    (api_request, {**FIND_BRANCH, **READY_BRANCH}, {"kind": "list_lag", "seconds": 60, "method": "POST"}),
    (api_request, {**RENAME_BRANCH, "branch": "existing"}, IGNORED),
    (branch, {"project": "shop", "name": "main", "state": "absent"}, None),
    (branch, {"project": "shop", "name": "pr-*", "state": "absent"}, None),
    (branch_restore, {"project": "shop", "name": "main", "timestamp": "400d", "preserve_as": "old"}, None),
    (project, {"name": "shop", "history_retention": "90d"}, None),
    (project, {"name": "blog", "settings": {"quotas": {}}}, IGNORED),
    (database, {"project": "shop", "name": "orders", "owner": "app"}, None),
    (api_request, {**FIND_BRANCH, "body": {"brnch": {"name": "preview"}}}, None),
    (api_request, {**FIND_BRANCH, "body": {"branch": {"nmae": "preview"}}}, None),
    (api_request, {**FIND_BRANCH, "find": {"list": "branchs", "match": {"name": "preview"}}}, None),
    (api_request, MISSPELT_BRANCH, None),
    (api_request, {"path": "projects//branches"}, None),
    (operation_wait, {"timeline": [[0, "running"]], "branch": "existing", "timeout": 0}, None),
    (operation_wait, {"timeline": [[0, "failed"]], "branch": "existing"}, None),
    (operation_wait, {**UNKNOWN_OPERATION, "timeout": 0}, {"kind": "reset"}),
    (operation_wait, {**UNKNOWN_OPERATION, "api_key": "no-key-of-this-account"}, None),
    (operation_info, {"status": ["faild"]}, None),
    (operation_info, {"status": ["deferred"]}, None),
    (operation_info, {"project_id": None}, None),
    (api_key, {"name": 1.1}, None),
    (api_key, {"name": "deploy", "dest": "deploy.key", "mode": 440}, None),
]


def messages_of(sandbox: Sandbox, module: ModuleType, options: dict[str, Any], fault: dict[str, Any] | None) -> str:
    """The message and the warnings of a module in this situation."""
    created = sandbox.api("POST", "/api_keys", {"key_name": "deploy"})
    Path("deploy's.key").write_text(created["key"])
    if options.pop("is_own", False):
        options["api_key"] = created["key"]
    if options.pop("second_key", False):
        sandbox.api("POST", "/api_keys", {"key_name": "deploy"})
    if options.pop("listed_late", False):
        # The list does not show the task's own use of its key.
        assert sandbox.accepts(sandbox.api("POST", "/api_keys", {"key_name": "deploy"})["key"])
        keys = sandbox.api("GET", "/api_keys")
        fault = {"kind": "status", "status": 200, "method": "GET", "path": "/api_keys", "body": keys}
    name = "deploy-20261121T080000Z"
    if options.pop("unused_key", False):
        options["key_id"] = sandbox.api("POST", "/api_keys", {"key_name": name})["id"]
    if options.pop("foreign_key", False):
        assert sandbox.accepts(sandbox.api("POST", "/api_keys", {"key_name": name})["key"])
    if inspected := options.pop("inspected", {}):
        options["play_hosts"] = [*options.get("play_hosts", []), *inspected]
        results = [inspection_of(sandbox, host, files) for host, files in inspected.items()]
        options["confirmations"] = [result["confirmation"] for result in results]
        options["host_lists"] = [text for result in results for text in result["host_lists"]]
    if timeline := options.pop("timeline", None):
        sandbox.plan(*timeline, action="create_branch", error="no space left")
    if state := options.pop("branch", None):
        branch = sandbox.api("POST", f"/projects/{SHOP}/branches", {"branch": {"name": "preview"}, "endpoints": []})
        if module is operation_wait:
            options["operations"] = branch["operations"]
        if state == "deleted":
            sandbox.fault("lingering_deletion", seconds=60)
            sandbox.api("DELETE", f"/projects/{SHOP}/branches/{branch['branch']['id']}")
    if fault:
        sandbox.fault(**{"times": None, **fault})
    wanted = {"base_url": sandbox.base_url, "api_key": API_KEY, **options}
    # Without a value, base_url and api_key are omitted.
    given = {name: value for name, value in wanted.items() if value is not None or name not in ("base_url", "api_key")}
    ended = run_main(module, given)
    return f"{ended.result.get('msg')} {ended.result.get('warnings')}"


def inspection_of(sandbox: Sandbox, host: str, files: dict[str, str]) -> dict[str, Any]:
    service = {"base_url": sandbox.base_url, "api_key": API_KEY}
    options = {**service, "step": "inspect", "run": "run", "host": host, **files}
    return run_main(api_key_deployment, options).result


def refuse_foreign_file(temporary: secret_file.TemporaryFile, uid: int, gid: int) -> None:
    if temporary.target.endswith("/foreign.key"):
        raise PermissionError


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The messages of all situations, without variables of the environment and without delays."""
    with ExitStack() as stack:
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("CLOUDDB_BASE_URL", "CLOUDDB_API_KEY", "CLOUDDB_ORG_ID", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            patched.delenv(name, raising=False)
        directory = tmp_path_factory.mktemp("files")
        patched.chdir(directory)
        patched.setattr(module_run, "Client", partial(Client, clock=FakeClock().clock))
        (directory / "refused.key").write_text("revoked")
        (directory / "app.env").write_text("CLOUDDB_API_KEY=secret")
        (directory / "foreign.key").write_text("revoked")
        patched.setattr(secret_file, "_set_owner", refuse_foreign_file)
        known = {1: KnownKey(["web1", "web2"], "0" * 64)}
        record = Record(1, None, COMMITTED, None, None, known, host="web1").as_text()
        (directory / "web1.rotation").write_text(record)

        def message_of(module: ModuleType, options: dict[str, Any], fault: dict[str, Any] | None = None) -> str:
            with running_sandbox(tmp_path_factory.mktemp("sandbox"), projects=PROJECTS) as sandbox:
                return messages_of(sandbox, module, dict(options), fault)

        found = [message_of(*case) for case in CASES]
        untrusted: ScriptedService = stack.enter_context(scripted_service(tls=True))
        found.append(message_of(project_info, {"base_url": untrusted.base_url}))
        with patched.context() as within:
            # Only later versions of Python check this.
            refused = Mock(side_effect=certificate_error(85, "Missing Authority Key Identifier"))
            within.setattr(session.AttemptAdapter, "send", refused)
            found.append(message_of(project_info, {}))
        patched.setattr(module_run, "REQUESTS_IMPORT_ERROR", "Traceback")
        return [*found, message_of(project_info, {})]


@pytest.mark.parametrize("message", shown_messages())
def test_message_exists(message: str, messages: list[str]) -> None:
    on_controller = (" ".join(path.read_text(encoding="utf-8").split()) for path in CONTROLLER_FILES)
    assert any(pattern(message).search(text) for text in chain(messages, on_controller)), "\n".join(messages)
