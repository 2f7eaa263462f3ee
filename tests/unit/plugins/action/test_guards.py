# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugins of the rotation, with a fake module. The suite of rotations runs the real ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.action import api_key_deployment, api_key_rotation
from ansible_collections.clouddb.control.plugins.plugin_utils._fork import ForkAction

RAN = {"changed": True}
HOSTS = ["web1", "web2"]


@pytest.fixture(autouse=True)
def fake_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForkAction, "run", lambda *_arguments: dict(RAN))


def run(plugin: Any, task: SimpleNamespace, **task_vars: Any) -> dict[str, Any]:
    """The result of a task of host web2."""
    action = plugin.ActionModule(task, mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock())
    return dict(action.run("tmp", {"inventory_hostname": "web2", **task_vars}))


@pytest.mark.parametrize("delegate_to", [None, "", "web2"])
def test_a_deployment_on_its_own_host_runs_the_module(delegate_to: str | None) -> None:
    assert run(api_key_deployment, SimpleNamespace(args={}, delegate_to=delegate_to)) == RAN


def test_a_deployment_that_is_delegated_is_refused() -> None:
    result = run(api_key_deployment, SimpleNamespace(args={}, delegate_to="localhost"))
    assert (result["failed"], result["failure"]) == (True, {"kind": "deployment_refused"})
    assert "delegated to localhost" in result["msg"]


def rotate(strategy: str, **task_vars: Any) -> dict[str, Any]:
    """The result of a task in a play with this strategy."""
    task = SimpleNamespace(args={}, get_play=lambda: SimpleNamespace(strategy=strategy))
    return run(api_key_rotation, task, **task_vars)


@pytest.mark.parametrize("strategy", ["linear", "ansible.builtin.debug", "mitogen_linear"])
def test_linear_strategies_run_the_module(strategy: str) -> None:
    assert rotate(strategy, ansible_play_hosts_all=HOSTS) == RAN


@pytest.mark.parametrize("strategy", ["ansible.builtin.free", "host_pinned"])
def test_other_strategies_are_refused(strategy: str) -> None:
    result = rotate(strategy, ansible_play_hosts_all=HOSTS)
    assert (result["failed"], result["failure"]) == (True, {"kind": "rotation_refused", "hosts": HOSTS})
    assert strategy in result["msg"]
    # Even if the hosts of the play are unknown.
    assert rotate(strategy)["failure"] == {"kind": "rotation_refused", "hosts": []}
