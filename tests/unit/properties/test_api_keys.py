# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""api_key keeps its promises whatever fails, and whatever other tasks do between its requests.

Several hosts run tasks for one key name. Each request of a task can fail, before or after the service has acted, and
before each of them another task can run from start to end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import ADMIN_SECRET, SimulatedAccount

NAME = "deploy"
# Each host has a file in a folder of its own; the third one has none.
HOSTS = ("web1", "web2")
FILES = (*HOSTS, None)
# Enough for the longest tasks: list, create, list, verify, and revoke several keys; list four times, and revoke several keys.
MAX_REQUESTS = 12

# A request never arrives, the service rejects it without saying whether it acted, or its response is lost.
faults = st.lists(st.sampled_from([None, None, None, "refused", "error", "lost"]), max_size=MAX_REQUESTS)


class Task(NamedTuple):
    """The options of a task, which writes the secret to the file of this name."""

    state: str
    file: str | None
    regenerate: str


tasks = st.builds(
    Task,
    st.sampled_from(["present", "present", "absent"]),
    st.sampled_from(FILES),
    st.sampled_from(["never", "if_lost", "always"]),
)
# Tasks that run from start to end before the request with this number of another task.
Others = list[tuple[int, Task]]
others = st.lists(st.tuples(st.integers(0, MAX_REQUESTS - 1), tasks), max_size=2)


class Tasks(RuleBasedStateMachine):
    """An account, hosts with files, and what the tasks have reported."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="clouddb-tasks-")
        self.folder = Path(self._folder.name)
        for host in HOSTS:
            (self.folder / host).mkdir()
        self.account = SimulatedAccount()
        # The secret of a key with another name.
        _id, self.foreign_secret = self.account.create("tools")
        # The ids of keys that somebody knows about: from a result, a message, or because they were not created by a task.
        self.reported: set[int] = set()

    def teardown(self) -> None:
        self._folder.cleanup()

    def active(self) -> list[int]:
        """The ids of the keys with the name."""
        return [key_id for key_id, key in self.account.keys.items() if key["name"] == NAME]

    def path(self, file: str | None) -> Path:
        return self.folder / str(file) / "deploy.key"

    def secret_in(self, file: str | None) -> str | None:
        return self.path(file).read_text(encoding="utf-8") if file and self.path(file).exists() else None

    def holds_valid_secret(self, file: str | None) -> bool:
        return self.account.is_active(self.secret_in(file))

    def holds_foreign_secret(self, file: str | None) -> bool:
        """Whether the file surely holds the secret of a key with another name: no key has the name."""
        return not self.active() and self.secret_in(file) == self.foreign_secret

    def own_secret(self) -> str:
        """What tasks authenticate with: the key that they replace or revoke, if its secret is known."""
        own = self.secret_in("web1")
        return own if own and self.account.is_active(own) else ADMIN_SECRET

    def run(self, task: Task) -> dict[str, Any]:
        """The result of a task, which has C(msg) if it failed; remembers which keys it has reported."""
        has_file = task.file and task.state == "present"
        params = {
            "state": task.state,
            "name": NAME,
            "id": None,
            "dest": str(self.path(task.file)) if has_file else None,
            "regenerate": "never" if (task.file, task.regenerate) == (None, "if_lost") else task.regenerate,
            "allow_multiple": True,
        }
        before = set(self.active())
        try:
            result = api_key.run(params, self.account.client(self.own_secret()), False, lambda path: False)
        except ClouddbError as error:
            result = error.as_result()
        if result.get("api_key"):
            self.reported.add(result["api_key"]["id"])
        self.reported.update(result.get("failure", {}).get("key_ids", []))
        if "keys could not be listed" in result.get("msg", ""):
            # The message says how to find the key whose id is not known.
            self.reported.update(set(self.active()) - before)
        return result

    def run_disturbed(self, task: Task, planned: list[str | None], during: Others) -> dict[str, Any]:
        """The result of a task with faults in its requests, during which other tasks run."""

        def disturb(number: int) -> str | None:
            rest, self.account.planned = self.account.planned, iter(())
            for position, other in during:
                # Tasks that share a file run one after the other.
                if position == number and (task.file is None or other.file != task.file):
                    self.run(other)
            self.account.planned = rest
            return planned[number] if number < len(planned) else None

        self.account.plan(*(partial(disturb, number) for number in range(MAX_REQUESTS)))
        try:
            return self.run(task)
        finally:
            self.account.plan()

    @rule(task=tasks, planned=faults)
    def run_with_faults(self, task: Task, planned: list[str | None]) -> None:
        file, before, own = task.file, self.active(), self.own_secret()
        content = self.secret_in(file)
        was_valid, was_foreign = self.holds_valid_secret(file), self.holds_foreign_secret(file)
        result = self.run_disturbed(task, planned, [])
        if task.state == "present":
            if was_foreign:
                assert "msg" in result and self.secret_in(file) == self.foreign_secret
            elif "msg" not in result:
                assert self.active()
                assert file is None or self.holds_valid_secret(file)
            if was_valid or self.secret_in(file) != content:
                assert self.holds_valid_secret(file)
            if file is None and result.get("key"):
                assert self.account.is_active(result["key"])
        elif "msg" not in result:
            assert not self.active()
            assert sorted(key["id"] for key in result["revoked"]) == before
        else:
            # Otherwise no further run could revoke the others.
            assert self.account.is_active(own) or not self.active()

    @precondition(lambda self: not self.active())
    @rule(file=st.sampled_from(FILES), position=st.integers(1, 3), other_file=st.sampled_from(FILES))
    def race(self, file: str | None, position: int, other_file: str | None) -> None:
        """Two tasks create the key at the same time."""
        refused = [name for name in (file, other_file) if self.holds_foreign_secret(name)]
        theirs = (position, Task("present", other_file, "never"))
        result = self.run_disturbed(Task("present", file, "never"), [], [theirs])
        if refused:
            assert len(self.active()) <= 1
            assert all(self.secret_in(name) == self.foreign_secret for name in refused)
        else:
            assert len(self.active()) == 1
            assert result["failure"]["kind"] == "secret_unavailable" if "msg" in result else result["api_key"]

    @rule(task=tasks, planned=faults, during=others)
    def run_with_other_tasks(self, task: Task, planned: list[str | None], during: Others) -> None:
        self.run_disturbed(task, planned, during)

    # What else happens

    @rule()
    def create_by_hand(self) -> None:
        key_id, _secret = self.account.create(NAME)
        self.reported.add(key_id)

    @rule(number=st.integers(0, 3))
    def revoke_by_hand(self, number: int) -> None:
        for key_id in self.active()[number : number + 1]:
            del self.account.keys[key_id]

    @rule(file=st.sampled_from(HOSTS), content=st.sampled_from(["", "garbage", "foreign", None]))
    def edit(self, file: str, content: str | None) -> None:
        if content is None:
            self.path(file).unlink(missing_ok=True)
        else:
            self.path(file).write_text(self.foreign_secret if content == "foreign" else content, encoding="utf-8")

    @rule(seconds=st.sampled_from([1, 3600]))
    def wait(self, seconds: int) -> None:
        self.account.clock.elapsed += seconds

    @invariant()
    def every_key_was_reported(self) -> None:
        assert set(self.active()) <= self.reported

    @invariant()
    def other_keys_are_unchanged(self) -> None:
        assert self.account.is_active(ADMIN_SECRET) and self.account.is_active(self.foreign_secret)

    @invariant()
    def nothing_else_is_in_the_folder(self) -> None:
        files = {path.name for path in self.folder.glob("*/*")}
        assert files <= {"deploy.key"}


TestTasks: Callable[..., Any] = Tasks.TestCase
