# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenarios that the matrix tests: how the role is included, as plays and arguments of ansible-playbook."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ROLE = "clouddb.control.api_key_rotation"
IGNORE_ERRORS = {"ignore_errors": True}
IGNORE_UNREACHABLE = {"ignore_unreachable": True}
ALL = {"api_key_rotation_hosts": ["web1", "web2", "web3"]}
RESCUE = {"rescue": [{"name": "Go on", "ansible.builtin.debug": {"msg": "rescued"}}]}


@dataclass(frozen=True)
class Scenario:
    """Keywords of the play, of the block around the task, of the task and of C(apply), and arguments."""

    name: str
    role: str = "include_role"
    play: dict[str, Any] = field(default_factory=dict)
    block: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    apply: dict[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)
    start: str = "rotated"
    """The state before the run: rotated, empty (no key yet), or unrevoked (the older key is still valid)."""
    hosts: tuple[str, ...] = ("web1", "web2", "web3")
    """Hosts that a successful first rotation must reach."""

    @property
    def is_check(self) -> bool:
        return bool(self.play.get("check_mode", "--check" in self.arguments))

    def playbook(self, variables: dict[str, Any]) -> list[dict[str, Any]]:
        task = {"name": "Rotate", f"ansible.builtin.{self.role}": {"name": ROLE}, **self.task}
        if self.apply:
            task[f"ansible.builtin.{self.role}"]["apply"] = self.apply
        play = {
            "name": "Rotate the key",
            "hosts": "users",
            "gather_facts": False,
            "module_defaults": {"group/clouddb.control.all": {"api_retries": 0}},
            "vars": {**variables, **self.variables},
            "tasks": [{"name": "Block", "block": [task], **self.block}] if self.block else [task],
            **self.play,
        }
        return [play]


PLAIN = Scenario("no keyword")

SCENARIOS = (
    PLAIN,
    Scenario("only the revocation is left", start="unrevoked", variables={"api_key_rotation_max_age": "30d"}),
    Scenario("no key yet", start="empty"),
    Scenario("import_role", role="import_role"),
    Scenario("ignore_errors on the play", play=IGNORE_ERRORS),
    Scenario("ignore_errors on a block", block=IGNORE_ERRORS),
    Scenario("ignore_errors on include_role", task=IGNORE_ERRORS),
    Scenario("ignore_errors by apply", apply=IGNORE_ERRORS),
    Scenario("ignore_errors on import_role", role="import_role", task=IGNORE_ERRORS),
    Scenario("ignore_unreachable on the play", play=IGNORE_UNREACHABLE),
    Scenario("ignore_unreachable on include_role", task=IGNORE_UNREACHABLE),
    Scenario("ignore_unreachable by apply", apply=IGNORE_UNREACHABLE),
    Scenario("ignore_unreachable on import_role", role="import_role", task=IGNORE_UNREACHABLE),
    Scenario("ignore_errors and ignore_unreachable on the play", play={**IGNORE_ERRORS, **IGNORE_UNREACHABLE}),
    Scenario("any_errors_fatal", play={"any_errors_fatal": True}),
    Scenario("max_fail_percentage: 100", play={"max_fail_percentage": 100}),
    Scenario("rescue", block=RESCUE),
    Scenario("run_once on include_role", task={"run_once": True}),
    Scenario("run_once by apply", apply={"run_once": True}),
    Scenario("delegate_to by apply", apply={"delegate_to": "web1"}),
    Scenario("delegate_to on a block", role="import_role", block={"delegate_to": "web1"}),
    Scenario("when excludes a host", task={"when": "inventory_hostname != 'web3'"}),
    Scenario("--limit web1", arguments=("--limit", "web1")),
    Scenario("--limit without web1", arguments=("--limit", "all:!web1")),
    Scenario("--limit web1, hosts named", arguments=("--limit", "web1"), variables=ALL),
    Scenario("--limit web1, no key yet", arguments=("--limit", "web1"), start="empty", hosts=("web1",)),
    Scenario("--limit web1, no key yet, hosts named", arguments=("--limit", "web1"), start="empty", variables=ALL),
    Scenario("--tags, by apply", task={"tags": "rotate"}, apply={"tags": "rotate"}, arguments=("--tags", "rotate")),
    Scenario("--tags, without apply", task={"tags": "rotate"}, arguments=("--tags", "rotate")),
    Scenario("--tags, on import_role", role="import_role", task={"tags": "rotate"}, arguments=("--tags", "rotate")),
    Scenario("--skip-tags of the deployment tasks", arguments=("--skip-tags", "vault")),
    Scenario("strategy free", play={"strategy": "free"}),
    Scenario("strategy host_pinned", play={"strategy": "host_pinned"}),
    Scenario("serial: 1", play={"serial": 1}),
    Scenario("serial: 2", play={"serial": 2}),
    Scenario("throttle: 1", block={"throttle": 1}),
    Scenario("--check", arguments=("--check",)),
    Scenario("check_mode on the play", play={"check_mode": True}),
    Scenario("--check, check_mode: false on the play", play={"check_mode": False}, arguments=("--check",)),
)
