# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job templates as jobs: ansible-runner, a credential of the collection's type, a sandbox; no secret is written down."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from awx_api import TOKEN, Awx
from jobs import WITH_ENVIRONMENT, Controller, Job
from sandbox import API_KEY, Sandbox

SECRET = re.compile(rb"\b[0-9A-Za-z_-]{64}\b")
WEEK = 7 * 86400


def credential(sandbox: Sandbox) -> dict[str, str]:
    return {"base_url": sandbox.base_url, "api_key": API_KEY}


def assert_hidden(job: Job, *secrets: str) -> None:
    for secret in secrets:
        assert set(job.files_with(secret)) <= {WITH_ENVIRONMENT}


def test_the_quickstart_needs_no_credential(controller: Controller, tmp_path: Path) -> None:
    # That of the tests has what the sandbox needs, which saves its installation.
    venv = {"sandbox_virtualenv": str(controller.root / "venv")}
    job = controller.play("clouddb.control.quickstart", tmp_path / "job", {}, venv)
    assert (job.status, job.failed_hosts()) == ("successful", []), job.failures()
    [wait] = job.results("4. Wait for the operations of that response")
    assert {operation["status"] for operation in wait["operations"]} == {"finished"}
    [refusal] = job.results("Show that it is of no use any more")
    assert "the service answers 401 to it" in refusal["msg"]
    # Its keys are gone with its sandbox, so anything that looks like one counts.
    for path in job.artifacts.rglob("*"):
        assert path.name == WITH_ENVIRONMENT or not path.is_file() or not SECRET.search(path.read_bytes()), path


def test_a_survey_is_answered(controller: Controller, sandbox: Sandbox, tmp_path: Path) -> None:
    answers = {
        question["variable"]: question["default"]
        for question in controller.settings("surveys/branch_with_database.yml")["spec"]
    }
    answers |= {"project_name": "shop", "branch_name": "pr-42"}
    job = controller.launch("clouddb branch with database", tmp_path / "job", credential(sandbox), answers)
    assert (job.status, job.failed_hosts()) == ("successful", []), job.failures()
    [wait] = job.results("Wait until the branch is there and its compute has started")
    assert sorted(operation["action"] for operation in wait["operations"]) == ["create_branch", "start_compute"]

    [project] = sandbox.api("GET", "/projects")["projects"]
    branches = sandbox.api("GET", f"/projects/{project['id']}/branches")["branches"]
    [branch] = [each["id"] for each in branches if each["name"] == "pr-42"]
    databases = sandbox.api("GET", f"/projects/{project['id']}/branches/{branch}/databases")["databases"]
    assert [(database["name"], database["owner_name"]) for database in databases] == [("app", "app")]
    # That the key is found in the one file where it has to be shows that it would be found in others.
    assert job.files_with(API_KEY) == [WITH_ENVIRONMENT]


def test_a_failed_operation_fails_the_alert(controller: Controller, sandbox: Sandbox, tmp_path: Path) -> None:
    [project] = sandbox.api("GET", "/projects")["projects"]
    sandbox.plan((0, "failed"), error="no such image")
    sandbox.api("POST", f"/projects/{project['id']}/branches", {"branch": {"name": "broken"}, "endpoints": []})
    job = controller.launch("clouddb alert on failures", tmp_path / "job", credential(sandbox))
    assert job.status == "failed" and job.failed_hosts() == ["localhost"]
    [result] = job.results("Fail with the list")
    assert f"create_branch in {project['id']}: no such image" in result["msg"]
    assert_hidden(job, API_KEY)


def test_a_credential_is_rotated_week_by_week(
    controller: Controller, sandbox: Sandbox, awx: Awx, tmp_path: Path
) -> None:
    stored = a_credential(awx, sandbox)
    secrets = [API_KEY]
    for week in (1, 2):
        job = rotate(controller, awx, stored["inputs"], tmp_path / f"job{week}")
        assert (job.status, job.failed_hosts()) == ("successful", []), job.failures()
        secrets.append(stored["inputs"]["api_key"])
        assert_hidden(job, *secrets)
        assert sandbox.accepts(secrets[-1])
        assert awx.objects["credentials"] == [stored]
        # An hour before the week is over: schedules are not exact.
        sandbox.advance(WEEK - 3600)
    assert len(set(secrets)) == 3
    # Jobs that were running at the last rotation have the key before.
    assert sandbox.accepts(secrets[1])


def test_a_credential_gets_its_former_key_back_if_the_new_one_is_refused(
    controller: Controller, sandbox: Sandbox, awx: Awx, tmp_path: Path
) -> None:
    stored = a_credential(awx, sandbox)
    handed_over: list[str] = []

    def refuse() -> None:
        handed_over.append(stored["inputs"]["api_key"])
        if len(handed_over) == 1:
            # As often as the role tries to verify a key.
            sandbox.fault("status", status=401, method="GET", path="/api_keys", times=3)

    awx.after_change = refuse
    job = rotate(controller, awx, stored["inputs"], tmp_path / "job")
    assert job.status == "failed"
    assert len(handed_over) == 2 and handed_over[0] != API_KEY
    assert stored["inputs"]["api_key"] == API_KEY
    assert not sandbox.accepts(handed_over[0]) and sandbox.accepts(API_KEY)
    assert_hidden(job, *handed_over)


def test_an_application_gets_a_new_key_week_by_week(controller: Controller, sandbox: Sandbox, tmp_path: Path) -> None:
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


def a_credential(awx: Awx, sandbox: Sandbox) -> dict[str, Any]:
    kind, organization = awx.add("credential_types", {"name": "clouddb.control"}), awx.one("organizations", "Platform")
    references = {"organization": organization["id"], "credential_type": kind["id"]}
    return awx.add("credentials", {"name": "clouddb", **references, "inputs": credential(sandbox)})


def rotate(controller: Controller, awx: Awx, inputs: dict[str, str], folder: Path) -> Job:
    # What AWX injects for a credential of its own type "Red Hat Ansible Automation Platform".
    access = {"CONTROLLER_HOST": awx.host, "CONTROLLER_OAUTH_TOKEN": TOKEN}
    return controller.launch("clouddb rotate key", folder, inputs, {"clouddb_awx_organization": "Platform"}, env=access)
