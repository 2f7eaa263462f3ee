# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin with a fake module. The suite of disturbed rotations runs the real one with every strategy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.action.api_key_rotation import ActionModule
from ansible_collections.clouddb.control.plugins.plugin_utils._fork import ForkAction


def run(
    monkeypatch: pytest.MonkeyPatch, strategy: str, hosts: tuple[str, ...] | None = ("web1", "web2")
) -> dict[str, Any]:
    """The result of a task in a play with this strategy."""
    task = SimpleNamespace(args={}, get_play=lambda: SimpleNamespace(strategy=strategy))
    plugin = ActionModule(task, mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock())
    monkeypatch.setattr(ForkAction, "run", lambda *_arguments: {"changed": False, "reason": ""})
    return dict(plugin.run(task_vars={"ansible_play_hosts_all": list(hosts)} if hosts else None))


@pytest.mark.parametrize(
    "strategy", ["linear", "ansible.builtin.linear", "debug", "ansible.builtin.debug", "mitogen_linear"]
)
def test_linear_strategies_run_the_module(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    assert run(monkeypatch, strategy) == {"changed": False, "reason": ""}


@pytest.mark.parametrize("strategy", ["free", "ansible.builtin.free", "host_pinned", "mitogen_free"])
def test_other_strategies_are_refused(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    result = run(monkeypatch, strategy)
    assert result["failed"]
    assert result["failure"] == {"kind": "rotation_refused", "hosts": ["web1", "web2"]}
    assert strategy in result["msg"]


def test_a_play_whose_hosts_are_unknown_is_refused_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "free", hosts=None)["failure"] == {"kind": "rotation_refused", "hosts": []}
