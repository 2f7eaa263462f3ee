# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key killed by SIGKILL at the lines of its code, from the creation on: what is there then, and what the next run says and does."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.plugins.faults.own_process import lines_since, run_until_killed
from ansible_collections.clouddb.control.tests.unit.plugins.faults.wire import Wire
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import ids, mode_of
from ansible_collections.clouddb.control.tests.unit.support.module_main import Ended, run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

# Where the file is written, each line counts. Of the others, one in STRIDE is enough to be quick.
NEAR = ("_atomic_file.py", "secret_file.py")
STRIDE = 16


@pytest.fixture
def is_soak(request: pytest.FixtureRequest) -> bool:
    """Whether it may last (--hypothesis-profile=soak): then each line counts."""
    return bool(request.config.getoption("--hypothesis-profile", None) == "soak")


class Scene:
    """A folder and a name for each kill, and what there is to be seen of it."""

    def __init__(self, sandbox: Sandbox, wire: Wire, tmp_path: Path):
        self.sandbox, self.wire, self.folder = sandbox, wire, tmp_path / "secrets"
        self.dest = self.folder / "deploy.key"
        self.folder.mkdir()

    @property
    def key_ids(self) -> list[int]:
        return ids(self.sandbox.keys("deploy"))

    @property
    def options(self) -> dict[str, Any]:
        return {
            "base_url": self.wire.base_url,
            "api_key": self.sandbox.api_key,
            "name": "deploy",
            "dest": str(self.dest),
        }

    def run(self, **options: Any) -> Ended:
        return run_main(api_key, {**self.options, **options})

    def lines(self, is_soak: bool, **options: Any) -> list[int]:
        """At which lines to kill it, the first being 0."""
        places = lines_since(api_key, {**self.options, **options}, "create_key")
        self.clean()
        assert len(places) > 200
        return [line for line, place in enumerate(places) if is_soak or place.startswith(NEAR) or not line % STRIDE]

    def kill(self, line: int, **options: Any) -> str:
        """Kill the task just before this line; says which it is."""
        place = run_until_killed(api_key, {**self.options, **options}, "create_key", line)
        # What the task has sent is carried out, whether or not somebody waits for the response.
        self.wire.settle()
        assert {mode_of(self.folder / name) for name in os.listdir(self.folder)} <= {0o600}, place
        assert not self.dest.exists() or self.sandbox.accepts(self.dest.read_text()), f"{place}: no whole secret"
        return place

    def assert_one_key_with_its_secret(self) -> None:
        assert len(self.key_ids) == 1
        assert self.sandbox.accepts(self.dest.read_text())
        assert os.listdir(self.folder) == ["deploy.key"]

    def clean(self) -> None:
        """Revoke the keys past the module, so that no later run has more to read than this one."""
        for key_id in self.key_ids:
            self.sandbox.api("DELETE", f"/api_keys/{key_id}")
        self.dest.unlink()


@pytest.fixture
def scene(sandbox: Sandbox, wire: Wire, tmp_path: Path) -> Scene:
    return Scene(sandbox, wire, tmp_path)


def test_a_killed_creation_leaves_at_most_one_key_which_the_next_run_names(scene: Scene, is_soak: bool) -> None:
    outcomes: Counter[str] = Counter()
    for line in scene.lines(is_soak):
        place = scene.kill(line)
        existing, has_secret = scene.key_ids, scene.dest.exists()
        assert len(existing) <= 1, place

        after = scene.run()
        if existing and not has_secret:
            outcomes["lost"] += 1
            assert (after.failure["kind"], after.failure["key_ids"]) == ("secret_unavailable", existing), place
            assert f"(id {existing[0]})" in after.result["msg"]
            assert "Set regenerate: if_lost to replace the key" in after.result["msg"]
            assert os.listdir(scene.folder) == []
            assert ids(scene.run(regenerate="if_lost").success["revoked"]) == existing
        else:
            outcomes["kept" if existing else "not created"] += 1
            assert after.success["changed"] is not has_secret, place
        scene.assert_one_key_with_its_secret()
        scene.clean()
    print(f"{sum(outcomes.values())} kills: {dict(outcomes)}")
    assert set(outcomes) == {"not created", "lost", "kept"}


def test_a_killed_replacement_leaves_a_valid_secret(scene: Scene, is_soak: bool) -> None:
    outcomes: Counter[str] = Counter()
    scene.run()
    for line in scene.lines(is_soak, regenerate="always"):
        created = scene.run().success["api_key"]["id"]
        place = scene.kill(line, regenerate="always")
        existing = scene.key_ids
        assert scene.dest.exists(), place

        after = scene.run()
        assert not after.success["changed"]
        shown = " ".join(map(str, after.result.get("warnings", [])))
        if len(existing) == 1:
            outcomes["not replaced" if existing == [created] else "replaced"] += 1
            assert "are named" not in shown, place
        else:
            outcomes["both there"] += 1
            assert f"2 keys are named 'deploy' (ids {created}, {existing[1]})" in shown, place
            assert "set regenerate: always" in shown
        assert ids(scene.run(regenerate="always").success["revoked"]) == existing
        scene.assert_one_key_with_its_secret()
        scene.clean()
    print(f"{sum(outcomes.values())} kills: {dict(outcomes)}")
    assert set(outcomes) == {"not replaced", "both there", "replaced"}
