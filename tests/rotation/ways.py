# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways to include the role that the matrix tests, as plays and arguments of ansible-playbook."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ROLE = "clouddb.control.api_key_rotation"
IGNORE_ERRORS = {"ignore_errors": True}
IGNORE_UNREACHABLE = {"ignore_unreachable": True}
ALL = {"api_key_rotation_consumers": ["web1", "web2", "web3"]}
RESCUE = {"rescue": [{"name": "Go on", "ansible.builtin.debug": {"msg": "rescued"}}]}


@dataclass(frozen=True)
class Way:
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
        """Whether the run is in check mode."""
        return "--check" in self.arguments or bool(self.play.get("check_mode"))

    def playbook(self, variables: dict[str, Any]) -> list[dict[str, Any]]:
        """The play, as JSON."""
        task = {"name": "Rotate", f"ansible.builtin.{self.role}": {"name": ROLE}, **self.task}
        if self.apply:
            task[f"ansible.builtin.{self.role}"]["apply"] = self.apply
        play = {
            "name": "Rotate the key",
            "hosts": "consumers",
            "gather_facts": False,
            "module_defaults": {"group/clouddb.control.all": {"api_retries": 0}},
            "vars": {**variables, **self.variables},
            "tasks": [{"name": "Block", "block": [task], **self.block}] if self.block else [task],
            **self.play,
        }
        return [play]


PLAIN = Way("no keyword")

WAYS = (
    PLAIN,
    Way("only the revocation is left", start="unrevoked", variables={"api_key_rotation_max_age": "30d"}),
    Way("no key yet", start="empty"),
    Way("import_role", role="import_role"),
    Way("ignore_errors on the play", play=IGNORE_ERRORS),
    Way("ignore_errors on a block", block=IGNORE_ERRORS),
    Way("ignore_errors on include_role", task=IGNORE_ERRORS),
    Way("ignore_errors by apply", apply=IGNORE_ERRORS),
    Way("ignore_errors on import_role", role="import_role", task=IGNORE_ERRORS),
    Way("ignore_unreachable on the play", play=IGNORE_UNREACHABLE),
    Way("ignore_unreachable on include_role", task=IGNORE_UNREACHABLE),
    Way("ignore_unreachable by apply", apply=IGNORE_UNREACHABLE),
    Way("ignore_unreachable on import_role", role="import_role", task=IGNORE_UNREACHABLE),
    Way("both on the play", play={**IGNORE_ERRORS, **IGNORE_UNREACHABLE}),
    Way("any_errors_fatal", play={"any_errors_fatal": True}),
    Way("max_fail_percentage: 100", play={"max_fail_percentage": 100}),
    Way("rescue", block=RESCUE),
    Way("run_once on include_role", task={"run_once": True}),
    Way("run_once by apply", apply={"run_once": True}),
    Way("when excludes a host", task={"when": "inventory_hostname != 'web3'"}),
    Way("--limit web1", arguments=("--limit", "web1")),
    Way("--limit without web1", arguments=("--limit", "all:!web1")),
    Way("--limit web1, consumers set", arguments=("--limit", "web1"), variables=ALL),
    Way("--limit web1, no key yet", arguments=("--limit", "web1"), start="empty", hosts=("web1",)),
    Way("--limit web1, no key yet, consumers set", arguments=("--limit", "web1"), start="empty", variables=ALL),
    Way("--tags, by apply", task={"tags": "rotate"}, apply={"tags": "rotate"}, arguments=("--tags", "rotate")),
    Way("--tags, without apply", task={"tags": "rotate"}, arguments=("--tags", "rotate")),
    Way("--tags, on import_role", role="import_role", task={"tags": "rotate"}, arguments=("--tags", "rotate")),
    Way("--skip-tags of the deployment tasks", arguments=("--skip-tags", "vault")),
    Way("strategy free", play={"strategy": "free"}),
    Way("strategy host_pinned", play={"strategy": "host_pinned"}),
    Way("serial: 1", play={"serial": 1}),
    Way("serial: 2", play={"serial": 2}),
    Way("throttle: 1", block={"throttle": 1}),
    Way("--check", arguments=("--check",)),
    Way("check_mode on the play", play={"check_mode": True}),
)
