# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source within the real ansible-rulebook."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import API_KEY, PROJECT, Rulebook
from sandbox import Sandbox

Start = Callable[..., Rulebook]


def printing(**args: Any) -> list[dict[str, Any]]:
    """A rulebook that prints every event."""
    message = "EVENT {{ event.clouddb.operation.id }} {{ event.clouddb.previous_status }} {{ event.clouddb.operation.status }}"
    source = {"name": "operations", "clouddb.control.operations": {"interval": 0.5, "max_interval": 1, **args}}
    rule = {"name": "All", "condition": "event.clouddb is defined", "action": {"debug": {"msg": message}}}
    return [{"name": "Print", "hosts": "localhost", "sources": [source], "rules": [rule]}]


def branch(sandbox: Sandbox, name: str, *timeline: tuple[float, str]) -> str:
    """Start a create_branch operation with these statuses, by seconds from its start; returns its id."""
    sandbox.plan(*timeline, action="create_branch")
    started = sandbox.api("POST", f"/projects/{PROJECT}/branches", {"branch": {"name": name}, "endpoints": []})
    operation_id: str = started["operations"][0]["id"]
    return operation_id


def was_polled(sandbox: Sandbox) -> bool:
    return f"GET /projects/{PROJECT}/operations" in sandbox.sent()


@pytest.mark.smoke
def test_failed_operation_runs_the_playbook_of_the_sample_rulebook(
    sandbox: Sandbox, start: Start, tmp_path: Path
) -> None:
    rulebook = start("clouddb.control.operations", clouddb_report_dir=str(tmp_path / "reports"))
    rulebook.wait_for(lambda: was_polled(sandbox))
    failing = branch(sandbox, "broken", (0, "running"), (1, "failed"))
    report = tmp_path / "reports" / PROJECT / f"{failing}.md"
    rulebook.wait_for(report.exists)
    rulebook.wait_for(lambda: "failed=0" in rulebook.output)
    assert "create_branch is failed: the operation failed" in report.read_text()
    assert "Failed in this project within a day: 2" in report.read_text()
    # The one that had failed before is not reported.
    assert [path.name for path in report.parent.iterdir()] == [report.name]
    assert API_KEY not in rulebook.end()


def test_texts_of_the_service_are_never_rendered(sandbox: Sandbox, start: Start, tmp_path: Path) -> None:
    """Not even where a rule hands them to a playbook as extra variables, which are templates."""
    # ansible-rulebook copies the directory of the playbook with its content.
    play = tmp_path / "playbooks" / "play.yml"
    play.parent.mkdir()
    show = {"ansible.builtin.debug": {"msg": "SHOWN {{ text }} {{ ansible_eda }}"}}
    play.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [show]}]))
    rulebook = printing()
    [rule] = rulebook[0]["rules"]
    rule["condition"] = 'event.clouddb.operation.status == "failed"'
    rule["actions"] = [
        rule.pop("action"),
        {"debug": {"msg": "DEBUG {{ event.clouddb.operation.error }}"}},
        {"run_playbook": {"name": str(play), "extra_vars": {"text": "{{ event.clouddb.operation.error }}"}}},
    ]
    running = start(rulebook)
    running.wait_for(lambda: was_polled(sandbox))
    touch = f"{{{{ lookup('ansible.builtin.pipe', 'touch {tmp_path}/rendered') }}}}"
    sandbox.plan((0, "running"), (1, "failed"), action="create_branch", error=f"{touch}\x1b[31m$ANSIBLE_VAULT;1.1")
    sandbox.api("POST", f"/projects/{PROJECT}/branches", {"branch": {"name": "b"}, "endpoints": []})
    running.wait_for(lambda: "failed=0" in running.output)
    output = running.end()
    displayable = touch.replace("{{", "{ {") + r"\x1b[31m$ ANSIBLE_VAULT;1.1"
    assert f"DEBUG {displayable}" in output
    assert "SHOWN { { lookup('ansible.builtin.pipe'" in output
    assert not (tmp_path / "rendered").exists()


def test_slow_operation_is_shown(sandbox: Sandbox, start: Start, tmp_path: Path) -> None:
    rulebook = start("clouddb.control.operations", clouddb_report_dir=str(tmp_path / "reports"))
    rulebook.wait_for(lambda: was_polled(sandbox))
    branch(sandbox, "quick", (0, "running"), (1, "finished"))
    sandbox.advance(2)
    slow = branch(sandbox, "slow", (0, "running"), (100, "finished"))
    sandbox.advance(100)
    rulebook.wait_for(lambda: f"{slow} of {PROJECT} took 100.0 s" in rulebook.output)
    assert rulebook.end().count(" took ") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_restart_neither_misses_nor_repeats_events(
    sandbox: Sandbox, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    state = tmp_path / "state.json"
    first = start(printing(state_file=str(state)))
    first.wait_for(lambda: was_polled(sandbox))
    ended = [branch(sandbox, f"b{each}", (0, "finished")) for each in range(10)]
    unfinished = branch(sandbox, "unfinished", (0, "running"), (600, "failed"))
    first.wait_for(lambda: len(first.events()) == 11 and unfinished in state.read_text())
    first.end(number)

    sandbox.advance(600)
    meanwhile = [branch(sandbox, f"m{each}", (0, "finished")) for each in range(60)]
    second = start(printing(state_file=str(state)))
    second.wait_for(lambda: len(second.events()) >= 61)
    later = branch(sandbox, "later", (0, "finished"))
    second.wait_for(lambda: later in second.output)
    second.end()

    expected = [(name, "None", "finished") for name in (*ended, *meanwhile, later)]
    expected += [(unfinished, "None", "running"), (unfinished, "running", "failed")]
    assert sorted([*first.events(), *second.events()]) == sorted(expected)


def test_refused_key_fails(start: Start, sandbox: Sandbox) -> None:
    rulebook = start(printing(api_key="{{ key }}"), key="a-key-that-nobody-knows")
    assert rulebook.process.wait(90)
    assert "returned 401 Unauthorized" in rulebook.output
    assert "a-key-that-nobody-knows" not in rulebook.output


def test_arguments_can_be_variables(sandbox: Sandbox, start: Start) -> None:
    args = {name: "{{ settings." + name + " }}" for name in ("project_ids", "statuses", "backfill", "interval")}
    settings = {"project_ids": [PROJECT], "statuses": ["failed"], "backfill": "1d", "interval": 0.5}
    rulebook = start(printing(**args), settings=settings)
    rulebook.wait_for(lambda: len(rulebook.events()) == 1)
    assert json.dumps(rulebook.events()[0][1:]) == '["None", "failed"]'
    rulebook.end()
