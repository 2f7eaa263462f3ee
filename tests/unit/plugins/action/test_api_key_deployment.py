# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin with a fake module. The suite of rotations delegates the real one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from ansible_collections.clouddb.control.plugins.action.api_key_deployment import ActionModule
from ansible_collections.clouddb.control.plugins.plugin_utils._fork import ForkAction


def run(monkeypatch: pytest.MonkeyPatch, delegate_to: str | None) -> dict[str, Any]:
    """The result of a task of host web2 that is delegated."""
    task = SimpleNamespace(args={}, delegate_to=delegate_to)
    plugin = ActionModule(task, mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock(), mock.Mock())
    monkeypatch.setattr(
        ForkAction, "run", lambda plugin, tmp, task_vars: {"changed": True, "host": task_vars["inventory_hostname"]}
    )
    return dict(plugin.run("tmp", {"inventory_hostname": "web2"}))


@pytest.mark.parametrize("delegate_to", [None, "", "web2"])
def test_a_task_on_its_own_host_runs_the_module(monkeypatch: pytest.MonkeyPatch, delegate_to: str | None) -> None:
    assert run(monkeypatch, delegate_to) == {"changed": True, "host": "web2"}


@pytest.mark.parametrize("delegate_to", ["web1", "localhost"])
def test_delegation_is_refused(monkeypatch: pytest.MonkeyPatch, delegate_to: str) -> None:
    result = run(monkeypatch, delegate_to)
    assert result["failed"]
    assert result["failure"] == {"kind": "deployment_refused"}
    assert f"delegated to {delegate_to}" in result["msg"]
