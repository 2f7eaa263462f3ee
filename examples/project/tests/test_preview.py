"""The playbook preview.yml creates what a pull request needs, and reports what goes wrong."""

import subprocess

import pytest
import requests
from conftest import PROJECT

SHOP = "/projects/quiet-sea-11111111"


def send(sandbox, method, path, body=None, key=None):
    """Send a request to the sandbox and return the JSON of its response."""
    url = sandbox["CLOUDDB_BASE_URL"] + path
    headers = {"Authorization": f"Bearer {key or sandbox['CLOUDDB_API_KEY']}"}
    response = requests.request(method, url, json=body, headers=headers, timeout=30)
    response.raise_for_status()
    return response.json()


@pytest.fixture
def play(sandbox, tmp_path):
    """Runs the playbook, and returns its exit code and output."""

    def run(*arguments):
        variables = ["-e", "pull_request=42", "-e", f"key_file={tmp_path}/preview.key"]
        command = ["ansible-playbook", PROJECT / "preview.yml", *variables, *arguments]
        done = subprocess.run(command, env=sandbox, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(done.stdout)
        return done.returncode, done.stdout

    return run


def test_branch_and_key_can_be_used(sandbox, play, tmp_path):
    assert play()[0] == 0
    key = (tmp_path / "preview.key").read_text().strip()
    branches = send(sandbox, "GET", f"{SHOP}/branches", key=key)["branches"]
    [branch] = [branch for branch in branches if branch["name"] == "pr-42"]
    operations = send(sandbox, "GET", f"{SHOP}/operations")["operations"]
    states = {each["action"]: each["status"] for each in operations if each.get("branch_id") == branch["id"]}
    assert states == {"create_branch": "finished", "start_compute": "finished"}


def test_second_run_changes_nothing(play):
    assert "changed=2" in play()[1]
    code, output = play()
    assert code == 0 and "changed=0" in output


def test_check_mode_creates_nothing(sandbox, play, tmp_path):
    assert play("--check")[0] == 0
    assert "pr-42" not in [branch["name"] for branch in send(sandbox, "GET", f"{SHOP}/branches")["branches"]]
    assert not (tmp_path / "preview.key").exists()


def test_failed_operation_fails_the_playbook(sandbox, play):
    plan = {"action": "create_branch", "timeline": [[0, "running"], [1, "failed"]], "error": "no space left"}
    control = {**sandbox, "CLOUDDB_BASE_URL": sandbox["CLOUDDB_BASE_URL"].replace("/api/v2", "/_sandbox")}
    send(control, "POST", "/operation_plans", plan)
    code, output = play()
    assert code == 2 and "no space left" in output
