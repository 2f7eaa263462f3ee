# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key killed by SIGKILL at the lines of its code from the POST on: at most one key is orphaned, and the next run reports and replaces it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.plugins.faults.faulty_proxy import FaultyProxy
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import ids, mode_of
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

# The task is killed at one line in STRIDE, and more often in the files that write the secret; with --hypothesis-profile=soak
# at each line.
SECRET_FILE_CODE = ("atomic_file.py", "lock.py", "secret_file.py")
SECRET_FILE_STRIDE = 32
STRIDE = 160
PLUGINS = str(Path(api_key.__file__).parents[1])


def run_in_child(options: dict[str, Any], kill_at: int | None = None) -> list[str]:
    """Call main() in a child process, and return the lines of plugins/ that it executes from the call of create_key() on.

    With C(kill_at), the process gets SIGKILL just before the line with this index, and only that line is returned.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of a fork while there are other threads. The child does not use them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        # None before the call of create_key().
        executed: int | None = None
        # Several threads count their lines, and none goes on while the process is killed.
        counting = threading.Lock()

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal executed
            if not frame.f_code.co_filename.startswith(PLUGINS):
                return None
            with counting:
                if executed is None and frame.f_code.co_name == "create_key":
                    executed = 0
                if executed is not None and event == "line":
                    if kill_at in (None, executed):
                        os.write(writing, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}\n".encode())
                    if kill_at == executed:
                        os.kill(os.getpid(), signal.SIGKILL)
                    executed += 1
            return trace

        # Requests are sent in threads of their own.
        threading.settrace(trace)
        sys.settrace(trace)
        try:
            run_main(api_key, options)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        lines = pipe.read().splitlines()
    os.waitpid(child, 0)
    return lines


class KeyTask:
    """A task of api_key with dest, the key's state on the service and the folder of dest."""

    def __init__(self, sandbox: Sandbox, proxy: FaultyProxy, folder: Path):
        self.sandbox, self.proxy, self.folder, self.dest = sandbox, proxy, folder, folder / "deploy.key"
        connection = {"base_url": proxy.base_url, "api_key": sandbox.api_key}
        self.options: dict[str, Any] = {**connection, "name": "deploy", "dest": str(self.dest)}

    def run(self, **options: Any) -> Outcome:
        return run_main(api_key, {**self.options, **options})

    def lines(self, is_soak: bool, **options: Any) -> list[int]:
        """The indexes of the lines at which to kill the task."""
        executed = run_in_child({**self.options, **options})
        self.clean()
        return [
            index
            for index, line in enumerate(executed)
            if is_soak or not index % (SECRET_FILE_STRIDE if line.startswith(SECRET_FILE_CODE) else STRIDE)
        ]

    def kill(self, index: int, **options: Any) -> list[int]:
        """Kill the task just before the line with this index; returns the ids of the keys."""
        [line] = run_in_child({**self.options, **options}, index)
        # The sandbox processes what the task has sent, although the client is gone.
        self.proxy.wait_until_idle()
        assert {mode_of(path) for path in self.folder.iterdir()} <= {0o600}, line
        assert not self.dest.exists() or self.sandbox.accepts(self.dest.read_text()), f"{line}: incomplete secret"
        return ids(self.sandbox.keys("deploy"))

    def clean(self) -> None:
        """Check that there is one key and its secret, and remove both, so that every run starts with the same state."""
        [key_id] = ids(self.sandbox.keys("deploy"))
        assert self.sandbox.accepts(self.dest.read_text()) and list(self.folder.iterdir()) == [self.dest]
        self.sandbox.api("DELETE", f"/api_keys/{key_id}")
        self.dest.unlink()


@pytest.fixture
def task(sandbox: Sandbox, proxy: FaultyProxy, tmp_path: Path) -> KeyTask:
    task = KeyTask(sandbox, proxy, tmp_path)
    # What a process does once is done before it is forked, so that each child executes the same lines.
    task.run()
    task.clean()
    return task


def test_a_killed_creation_leaves_at_most_one_key_and_the_next_run_reports_it(task: KeyTask, is_soak: bool) -> None:
    outcomes = set()
    for index in task.lines(is_soak):
        existing, has_secret = task.kill(index), task.dest.exists()
        assert len(existing) <= 1
        after = task.run()
        if existing and not has_secret:
            outcomes.add("orphaned")
            assert (after.failure["kind"], after.failure["key_ids"]) == ("secret_unavailable", existing)
            assert ids(task.run(regenerate="if_lost").success["revoked"]) == existing
        else:
            outcomes.add("stored" if existing else "not created")
            assert after.success["changed"] is not has_secret
        task.clean()
    assert outcomes == {"not created", "orphaned", "stored"}


@pytest.mark.soak
def test_a_killed_replacement_leaves_a_valid_secret(task: KeyTask, is_soak: bool) -> None:
    outcomes = set()
    task.run()
    for index in task.lines(is_soak, regenerate="always"):
        created = task.run().success["api_key"]["id"]
        existing = task.kill(index, regenerate="always")
        outcomes.add((len(existing), created in existing))
        assert task.dest.exists() and len(existing) <= 2
        after = task.run().success
        assert not after["changed"] and bool(after.get("warnings")) is (len(existing) == 2)
        assert ids(task.run(regenerate="always").success["revoked"]) == existing
        task.clean()
    assert outcomes == {(1, True), (2, True), (1, False)}
