# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job templates as jobs of ansible-runner, against a sandbox. No artifact contains a secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from awx_api import Awx
from fake_service import TOKEN
from jobs import WITH_ENVIRONMENT, Controller, Job
from sandbox import API_KEY, Sandbox

SECRET = re.compile(rb"\b[0-9A-Za-z_-]{64}\b")
WEEK = 7 * 86400


def credential(sandbox: Sandbox) -> dict[str, str]:
    return {"base_url": sandbox.base_url, "api_key": API_KEY}


def assert_hidden(job: Job, *secrets: str) -> None:
    for secret in secrets:
        assert set(job.files_with(secret)) <= {WITH_ENVIRONMENT}


def test_quickstart_needs_no_credential(controller: Controller, tmp_path: Path) -> None:
    # This environment already contains the sandbox's requirements.
    venv = {"sandbox_virtualenv": str(controller.root / "venv")}
    job = controller.play("clouddb.control.quickstart", tmp_path / "job", {}, venv)
    assert (job.status, job.failed_hosts()) == ("successful", []), job.failures()
    [wait] = job.results("3. Create a branch with that key and wait until its compute has started")
    assert {operation["status"] for operation in wait["operations"]} == {"finished"}
    assert any(event["stdout"].startswith("clouddb: ") for event in job.events)
    [seen] = job.results("What you have just seen")
    assert any("received status 401" in line for line in seen["msg"])
    # The keys were removed with the sandbox, so the test searches for all texts in the form of a key.
    for path in job.artifacts.rglob("*"):
        assert path.name == WITH_ENVIRONMENT or not path.is_file() or not SECRET.search(path.read_bytes()), path


@pytest.mark.smoke
def test_survey_answers_reach_the_playbook(controller: Controller, sandbox: Sandbox, tmp_path: Path) -> None:
    answers = {
        question["variable"]: question["default"]
        for question in controller.settings("surveys/branch_with_database.yml")["spec"]
    }
    # As people paste them
    answers |= {"project_name": " shop", "branch_name": "pr-42 "}
    job = controller.launch("clouddb branch with database", tmp_path / "job", credential(sandbox), answers)
    assert (job.status, job.failed_hosts()) == ("successful", []), job.failures()
    [wait] = job.results("Create the branch and wait until its compute has started")
    assert sorted(operation["action"] for operation in wait["operations"]) == ["create_branch", "start_compute"]

    [project] = sandbox.api("GET", "/projects")["projects"]
    branches = sandbox.api("GET", f"/projects/{project['id']}/branches")["branches"]
    [branch] = [each["id"] for each in branches if each["name"] == "pr-42"]
    databases = sandbox.api("GET", f"/projects/{project['id']}/branches/{branch}/databases")["databases"]
    owners = {database["name"]: database["owner_name"] for database in databases}
    assert owners == {"clouddb": "clouddb_owner", "app": "app"}
    # Finding the key in the one expected file proves that the search works.
    assert job.files_with(API_KEY) == [WITH_ENVIRONMENT]


def test_weekly_rotation_of_the_credential(controller: Controller, sandbox: Sandbox, awx: Awx, tmp_path: Path) -> None:
    stored = add_credential(awx, sandbox)
    secrets = [API_KEY]
    for week in (1, 2, 3):
        job = rotate(controller, awx, stored["inputs"], tmp_path / f"job{week}")
        assert (job.status, job.failed_hosts()) == ("successful", []), job.failures()
        secrets.append(stored["inputs"]["api_key"])
        assert_hidden(job, *secrets)
        assert sandbox.accepts(secrets[-1])
        assert awx.objects["credentials"] == [stored]
        # One hour less than a week, because schedules are not exact.
        sandbox.advance(WEEK - 3600)
    assert isinstance(stored["inputs"]["api_key_id"], str)
    # The first key has another name. Jobs that ran during the last rotation still use the previous key.
    assert [sandbox.accepts(secret) for secret in secrets] == [True, False, True, True]


def test_refused_key_is_rolled_back(controller: Controller, sandbox: Sandbox, awx: Awx, tmp_path: Path) -> None:
    stored = add_credential(awx, sandbox)
    stored_keys: list[str] = []

    def refuse() -> None:
        stored_keys.append(stored["inputs"]["api_key"])
        if len(stored_keys) == 1:
            # As often as the role attempts to verify a key.
            sandbox.fault("status", status=401, method="GET", path="/api_keys", times=5)

    awx.after_change = refuse
    job = rotate(controller, awx, stored["inputs"], tmp_path / "job")
    assert job.status == "failed"
    assert len(stored_keys) == 2 and stored_keys[0] != API_KEY
    assert stored["inputs"]["api_key"] == API_KEY
    assert not sandbox.accepts(stored_keys[0]) and sandbox.accepts(API_KEY)
    assert_hidden(job, *stored_keys)


def test_weekly_rotation_of_an_application_key(controller: Controller, sandbox: Sandbox, tmp_path: Path) -> None:
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    inventory = {"myapp": {"hosts": {"web1": local}}}
    key_file = tmp_path / "clouddb.key"
    settings = {"api_key_rotation_dest": str(key_file), "api_key_rotation_grace_period": 0}
    secrets = []
    for week in (1, 2):
        job = controller.play(
            "rotate_key.yml", tmp_path / f"job{week}", controller.injected(credential(sandbox)), settings, inventory
        )
        assert (job.status, job.failed_hosts()) == ("successful", []), job.failures()
        secrets.append(key_file.read_text(encoding="utf-8").strip())
        assert_hidden(job, API_KEY, *secrets)
        sandbox.advance(WEEK - 3600)
    assert [sandbox.accepts(secret) for secret in secrets] == [False, True]


def add_credential(awx: Awx, sandbox: Sandbox) -> dict[str, Any]:
    kind, organization = awx.add("credential_types", {"name": "clouddb.control"}), awx.one("organizations", "Platform")
    references = {"organization": organization["id"], "credential_type": kind["id"]}
    return awx.add("credentials", {"name": "clouddb", **references, "inputs": credential(sandbox)})


def rotate(controller: Controller, awx: Awx, inputs: dict[str, str], folder: Path) -> Job:
    # The variables that AWX injects for a credential of its type "Red Hat Ansible Automation Platform".
    access = {"CONTROLLER_HOST": awx.url, "CONTROLLER_OAUTH_TOKEN": TOKEN}
    return controller.launch("clouddb rotate key", folder, inputs, {"clouddb_awx_organization": "Platform"}, env=access)
