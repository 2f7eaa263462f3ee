"""The playbooks create and remove what a pull request needs, and report what goes wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from conftest import PROJECT

Play = Callable[[str], "subprocess.CompletedProcess[str]"]

SHOP = "/api/v2/projects/quiet-sea-11111111"


def send(sandbox: dict[str, str], method: str, path: str, body: object = None, key: str = "") -> Any:
    """Send a request to the sandbox and return the JSON of its response."""
    url = sandbox["CLOUDDB_BASE_URL"].replace("/api/v2", path)
    headers = {"Authorization": f"Bearer {key or sandbox['CLOUDDB_API_KEY']}"}
    response = requests.request(method, url, json=body, headers=headers, timeout=30)
    response.raise_for_status()
    return response.json()


@pytest.fixture
def play(sandbox: dict[str, str], tmp_path: Path) -> Play:
    """Runs a playbook."""

    def run(name: str) -> subprocess.CompletedProcess[str]:
        variables = ["-e", "pull_request=42", "-e", f"key_file={tmp_path}/preview.key"]
        command = ["ansible-playbook", str(PROJECT / name), *variables]
        done = subprocess.run(
            command, env=sandbox, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        print(done.stdout)
        return done

    return run


def test_branch_and_key_are_created_once(sandbox: dict[str, str], play: Play, tmp_path: Path) -> None:
    assert play("preview.yml").returncode == 0
    again = play("preview.yml")
    assert again.returncode == 0
    assert "changed=0" in again.stdout

    key = (tmp_path / "preview.key").read_text().strip()
    branches = send(sandbox, "GET", f"{SHOP}/branches", key=key)["branches"]
    [branch] = [branch for branch in branches if branch["name"] == "pr-42"]
    operations = send(sandbox, "GET", f"{SHOP}/operations")["operations"]
    statuses = {each["action"]: each["status"] for each in operations if each["branch_id"] == branch["id"]}
    assert statuses == {"create_branch": "finished", "start_compute": "finished"}


def test_branch_and_key_are_removed_once(sandbox: dict[str, str], play: Play, tmp_path: Path) -> None:
    def account() -> list[list[str]]:
        """The names of all branches and keys."""
        branches = send(sandbox, "GET", f"{SHOP}/branches")["branches"]
        return [[each["name"] for each in objects] for objects in (branches, send(sandbox, "GET", "/api/v2/api_keys"))]

    before = account()
    assert play("preview.yml").returncode == 0
    assert play("remove_preview.yml").returncode == 0
    again = play("remove_preview.yml")
    assert again.returncode == 0
    assert "changed=0" in again.stdout

    assert account() == before
    assert not (tmp_path / "preview.key").exists()


def test_failed_operation_fails_the_playbook(sandbox: dict[str, str], play: Play) -> None:
    plan = {"action": "create_branch", "timeline": [[0, "running"], [1, "failed"]], "error": "no space left"}
    send(sandbox, "POST", "/_sandbox/operation_plans", plan)
    done = play("preview.yml")
    assert done.returncode == 2
    assert "no space left" in done.stdout
