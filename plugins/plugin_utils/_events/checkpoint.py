# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state that is kept over restarts of the event source, and when it is saved. Keeps P2 and P8."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ...module_utils._clock import Clock
from ...module_utils._errors import InvalidOption
from ...module_utils._untrusted import is_id
from .changes import SeenOperations, saved_beginning
from .state_file import StateFile

# In seconds, unless there is time to save more often.
SAVE_INTERVAL = 1.0
# Saving takes at most this share of the time, as the state of an account with thousands of projects is large.
SHARE_OF_SAVING = 1 / 20
# What rules may show of a project before it is listed again, and what tells whether it has changed since.
SAVED_FIELDS = ("name", "updated_at")

logger = logging.getLogger("clouddb.control.operations")


class State(NamedTuple):
    """What was seen of the operations of each project, and of deleted ones, by their ids.

    C(lists_began_at) is when the latest complete lists of projects began, the earliest first, by the service's clock; before
    them, the first start. It is empty until the service has responded for the first time. Of the projects as they were
    C(listed), SAVED_FIELDS are saved.
    """

    lists_began_at: list[datetime]
    projects: dict[str, SeenOperations]
    listed: Mapping[str, Mapping[str, Any]] = {}
    deleted: dict[str, SeenOperations] = {}


class Checkpoint:
    """Saves the state in the file C(path), if there is one.

    A file that is unusable from the start raises InvalidOption. An error later on is logged, and saving is retried: the
    file keeps an earlier state, so that a restart repeats events, but misses none.
    """

    def __init__(self, path: str | None, base_url: str, clock: Clock):
        self._file = StateFile(path) if path else None
        self._base_url = base_url
        self._clock = clock
        self._is_saved = True
        self._attempted_at = clock.monotonic()
        self._seconds = 0.0
        self._failing_since: float | None = None

    def load(self) -> State:
        """The state that an earlier run has saved, or else that of a first start, which is saved.

        Raises InvalidOption, also when the file can't be written.
        """
        state = self._read()
        if self._file:
            try:
                self._file.write(self._as_json(state))
            except OSError as error:
                problem = (
                    f"{self._file.path} can't be written: {error.strerror}. Check its folder, or name another file."
                )
                raise InvalidOption("state_file", problem) from error
        return state

    def _read(self) -> State:
        saved = self._file.read() if self._file else None
        if self._file is None or saved is None:
            return State([], {})
        try:
            base_url = saved["base_url"]
            state = State(
                [saved_beginning(moment) for moment in saved["lists_began_at"]],
                _seen_operations(saved["projects"]),
                {project_id: _saved_fields(project) for project_id, project in saved["listed"].items()},
                _seen_operations(saved["deleted"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            problem = f"{self._file.path} does not hold the state of this event source. Name another file."
            raise InvalidOption("state_file", problem) from None
        if base_url != self._base_url:
            problem = f"{self._file.path} is about another base_url, {base_url}. Name another file."
            raise InvalidOption("state_file", problem)
        return state

    def mark_changed(self) -> None:
        """The state differs from the one that was saved."""
        self._is_saved = False

    def is_due(self, is_idle: bool) -> bool:
        """Whether a changed state is to be saved now: at once when nothing else is to be done, or else once a second.

        A large state is saved less often.
        """
        if self._file is None or self._is_saved:
            return False
        pause = max(0.0 if is_idle else SAVE_INTERVAL, self._seconds / SHARE_OF_SAVING)
        return self._clock.monotonic() >= self._attempted_at + pause

    async def save(self, state: State) -> None:
        """Save the state in a thread; when cancelled, wait for the thread, so that it overwrites no later state."""
        if self._file is None:
            return
        self._is_saved = True
        started = self._clock.monotonic()
        saving = asyncio.get_running_loop().run_in_executor(None, self._write, self._as_json(state))
        try:
            await asyncio.shield(saving)
        finally:
            self._note(await saving)
            self._seconds = self._clock.monotonic() - started

    def save_now(self, state: State) -> None:
        """Save the state in this thread, for the last time."""
        error = self._write(self._as_json(state))
        if error and self._file:
            logger.error(
                "The state can't be saved to %s: %s. After a restart, the events since it was last saved are emitted again, "
                "with the same meta.uuid.",
                self._file.path,
                error.strerror,
            )

    def _write(self, content: dict[str, Any]) -> OSError | None:
        """Write the file; returns the error."""
        try:
            if self._file:
                self._file.write(content)
        except OSError as error:
            return error
        return None

    def _note(self, error: OSError | None) -> None:
        """Record the outcome of an attempt, and log it if it differs from the previous one."""
        now = self._clock.monotonic()
        self._attempted_at = now
        self._is_saved = self._is_saved and error is None
        if error and self._failing_since is None and self._file:
            self._failing_since = now
            logger.warning(
                "The state can't be saved to %s: %s. This is retried. If the event source ends before it succeeds, a restart "
                "emits the events since then again, with the same meta.uuid.",
                self._file.path,
                error.strerror,
            )
        elif error is None and self._failing_since is not None:
            logger.warning("The state is saved again, after %.0f s.", now - self._failing_since)
            self._failing_since = None

    def _as_json(self, state: State) -> dict[str, Any]:
        return {
            "base_url": self._base_url,
            "lists_began_at": [moment.isoformat() for moment in state.lists_began_at],
            "projects": {project_id: seen.as_json() for project_id, seen in state.projects.items()},
            "listed": {project_id: _saved_fields(project) for project_id, project in state.listed.items()},
            "deleted": {project_id: seen.as_json() for project_id, seen in state.deleted.items()},
        }


def _seen_operations(saved: Mapping[str, Any]) -> dict[str, SeenOperations]:
    """Raises ValueError, among others, for anything that was not saved."""
    if not all(map(is_id, saved)):
        raise ValueError
    return {project_id: SeenOperations.from_json(seen) for project_id, seen in saved.items()}


def _saved_fields(project: Mapping[str, Any]) -> dict[str, str]:
    return {field: project[field] for field in SAVED_FIELDS if isinstance(project.get(field), str)}
