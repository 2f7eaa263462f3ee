# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key killed by SIGKILL at the lines of its code from the POST on: at most one key is orphaned, and the next run reports and replaces it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.plugins.faults.child_process import lines_since, run_until_killed
from ansible_collections.clouddb.control.tests.unit.plugins.faults.faulty_proxy import FaultyProxy
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import ids, mode_of
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

# The task is killed at one line in STRIDE, and more often in the files that write the secret; with --hypothesis-profile=soak
# at each line.
SECRET_FILE_CODE = ("atomic_file.py", "secret_file.py")
SECRET_FILE_STRIDE = 8
STRIDE = 80


class KeyTask:
    """A task of api_key with dest, the key's state on the service and the folder of dest."""

    def __init__(self, sandbox: Sandbox, proxy: FaultyProxy, tmp_path: Path):
        self.sandbox, self.proxy, self.folder = sandbox, proxy, tmp_path / "secrets"
        self.dest = self.folder / "deploy.key"
        self.folder.mkdir()

    @property
    def key_ids(self) -> list[int]:
        return ids(self.sandbox.keys("deploy"))

    @property
    def options(self) -> dict[str, Any]:
        return {
            "base_url": self.proxy.base_url,
            "api_key": self.sandbox.api_key,
            "name": "deploy",
            "dest": str(self.dest),
        }

    def run(self, **options: Any) -> Outcome:
        return run_main(api_key, {**self.options, **options})

    def lines(self, is_soak: bool, **options: Any) -> list[int]:
        """The indexes of the lines at which to kill the task."""
        executed = lines_since(api_key, {**self.options, **options}, "create_key")
        self.clean()
        assert len(executed) > 200
        return [
            index
            for index, line in enumerate(executed)
            if is_soak or not index % (SECRET_FILE_STRIDE if line.startswith(SECRET_FILE_CODE) else STRIDE)
        ]

    def kill(self, index: int, **options: Any) -> str:
        """Kill the task just before the line with this index; returns the line."""
        line = run_until_killed(api_key, {**self.options, **options}, "create_key", index)
        # The sandbox processes what the task has sent, although the client is gone.
        self.proxy.wait_until_idle()
        assert {mode_of(self.folder / name) for name in os.listdir(self.folder)} <= {0o600}, line
        assert not self.dest.exists() or self.sandbox.accepts(self.dest.read_text()), f"{line}: incomplete secret"
        return line

    def assert_one_key_with_its_secret(self) -> None:
        assert len(self.key_ids) == 1
        assert self.sandbox.accepts(self.dest.read_text())
        assert not list(self.folder.glob("*.tmp"))

    def clean(self) -> None:
        """Revoke the keys without the module and remove dest, so that every run starts with the same state."""
        for key_id in self.key_ids:
            self.sandbox.api("DELETE", f"/api_keys/{key_id}")
        self.dest.unlink()


@pytest.fixture
def task(sandbox: Sandbox, proxy: FaultyProxy, tmp_path: Path) -> KeyTask:
    return KeyTask(sandbox, proxy, tmp_path)


def test_a_killed_creation_leaves_at_most_one_key_and_the_next_run_reports_it(task: KeyTask, is_soak: bool) -> None:
    outcomes: Counter[str] = Counter()
    for index in task.lines(is_soak):
        line = task.kill(index)
        existing, has_secret = task.key_ids, task.dest.exists()
        assert len(existing) <= 1, line

        after = task.run()
        if existing and not has_secret:
            outcomes["orphaned"] += 1
            assert (after.failure["kind"], after.failure["key_ids"]) == ("secret_unavailable", existing), line
            assert ids(task.run(regenerate="if_lost").success["revoked"]) == existing
        else:
            outcomes["stored" if existing else "not created"] += 1
            assert after.success["changed"] is not has_secret, line
        task.assert_one_key_with_its_secret()
        task.clean()
    print(f"{sum(outcomes.values())} kills: {dict(outcomes)}")
    assert set(outcomes) == {"not created", "orphaned", "stored"}


def test_a_killed_replacement_leaves_a_valid_secret(task: KeyTask, is_soak: bool) -> None:
    outcomes: Counter[str] = Counter()
    task.run()
    for index in task.lines(is_soak, regenerate="always"):
        created = task.run().success["api_key"]["id"]
        line = task.kill(index, regenerate="always")
        existing = task.key_ids
        assert task.dest.exists(), line

        after = task.run()
        assert not after.success["changed"]
        warnings = " ".join(map(str, after.result.get("warnings", [])))
        if len(existing) == 1:
            outcomes["not replaced" if existing == [created] else "replaced"] += 1
            assert "are named" not in warnings, line
        else:
            outcomes["both active"] += 1
            assert f"2 keys are named 'deploy' (ids {created}, {existing[1]})" in warnings, line
            assert "set regenerate: always" in warnings
        assert ids(task.run(regenerate="always").success["revoked"]) == existing
        task.assert_one_key_with_its_secret()
        task.clean()
    print(f"{sum(outcomes.values())} kills: {dict(outcomes)}")
    assert set(outcomes) == {"not replaced", "both active", "replaced"}
