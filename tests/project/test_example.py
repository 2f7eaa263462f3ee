# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example project is tested as its workflow does, its tests detect a broken playbook, and its settings are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import requests
import yaml
from conftest import Project

API_KEY = "key-of-the-sandbox"


def files(folder: Path) -> set[str]:
    """The files in a folder, without those that its .gitignore or pytest's own names."""
    ignored = {".pytest_cache", "__pycache__", ".sandbox", "ansible-navigator.log"}
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in paths if not ignored & {*path.parts}}


@pytest.mark.smoke
def test_steps_of_the_workflow_pass_and_leave_nothing(project: Project) -> None:
    before = files(project.folder)
    workflow = yaml.safe_load((project.folder / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["tests"]["steps"] if "run" in step]
    outputs = {}
    for command in commands:
        code, outputs[command] = project.run(command)
        assert code == 0
    assert "Nothing to do. All requested collections are already installed." in outputs[commands[1]]

    # Converge changed two objects, and the second run nothing.
    assert re.findall(r"localhost +: ok=2 +changed=(\d)", outputs["molecule test"]) == ["2", "0"]
    assert re.search(
        r"default +: actions=7 +successful=7 +disabled=0 +skipped=0 +missing=0 +failed=0", outputs["molecule test"]
    )
    assert re.search(r"^=+ 3 passed in ", outputs["pytest"], re.MULTILINE)
    assert files(project.folder) == before
    assert not project.is_sandbox_running()


def test_users_with_yamllint_copy_no_finding(project: Project) -> None:
    assert project.run("yamllint --strict -d default .") == (0, "")


@pytest.mark.parametrize(
    ("command", "name", "reason"),
    [
        ("molecule test", "preview-{{ pull_request }}", "[default > verify] Executed: Failed"),
        ("molecule test", "pr-{{ now().timestamp() }}", "[default > idempotence] Executed: Failed"),
        ("pytest", "pr-{{ now().timestamp() }}", "FAILED tests/test_preview.py::test_branch_and_key_are_created_once"),
    ],
)
def test_broken_playbook_is_detected(project: Project, command: str, name: str, reason: str) -> None:
    project.replace("preview.yml", "name: pr-{{ pull_request }}", f"name: {name}")
    code, output = project.run(command)
    assert code != 0
    assert reason in output
    assert not project.is_sandbox_running()


def test_navigator_runs_the_playbook_and_writes_no_artifact(project: Project) -> None:
    assert project.run("molecule create")[0] == 0
    before = files(project.folder)
    address = f"http://127.0.0.1:{project.port}"
    connection = f"CLOUDDB_BASE_URL={address}/api/v2 CLOUDDB_API_KEY={API_KEY}"
    code, output = project.run(f"{connection} ansible-navigator run preview.yml -e pull_request=7")
    assert code == 0
    assert re.search(r"localhost +: ok=2 +changed=2 ", output)
    assert files(project.folder) - before == {"preview-7.key"}

    sent = requests.get(f"{address}/_sandbox/requests", headers={"Authorization": f"Bearer {API_KEY}"}, timeout=30)
    created = [entry["path"] for entry in sent.json()["requests"] if entry["method"] == "POST"]
    assert created == ["/api/v2/projects/quiet-sea-11111111/branches", "/api/v2/api_keys"]

    assert project.run("molecule destroy")[0] == 0
    assert not project.is_sandbox_running()


@pytest.mark.parametrize(
    "command",
    [
        "ansible-navigator settings --schema json >schema.json && check-jsonschema --schemafile schema.json ansible-navigator.yml",
        "check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/test.yml",
    ],
)
def test_settings_match_their_schema(project: Project, command: str) -> None:
    assert project.run(command) == (0, "ok -- validation done\n")
