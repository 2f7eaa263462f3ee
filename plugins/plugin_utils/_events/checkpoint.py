# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state that is kept over restarts of the event source, and when it is saved. Keeps P2, P7 and P8."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from contextlib import ExitStack
from datetime import datetime
from typing import Any, NamedTuple

from ...module_utils._clock import Clock, Deadline
from ...module_utils._errors import InvalidOption
from ...module_utils._files.atomic_file import (
    open_regular_file,
    remove_temporary_files,
    resolve_directory,
    temporary_file,
)
from ...module_utils._files.lock import locked
from ...module_utils._timestamps import parse_timestamp
from .changes import FollowedProject

# In seconds, unless there is time to save more often.
SAVE_INTERVAL = 1.0
# Saving takes at most this share of the time, as the state of an account with thousands of projects is large.
SHARE_OF_SAVING = 1 / 20

logger = logging.getLogger("clouddb.control.operations")


class State(NamedTuple):
    """The projects by their ids. In projects that are listed later, operations created since C(new_since) are new.

    It is a time of the local clock until the service has responded for the first time.
    """

    new_since: datetime
    projects: dict[str, FollowedProject]
    is_local_time: bool = False


class Checkpoint:
    """Saves the state in the file C(path), if there is one.

    The file belongs to one C(base_url) and C(selection), the arguments that select events, and to one process at a time:
    another source would take changes for reported that it did not report.
    A file that is unusable from the start raises InvalidOption. An error later on is logged, and saving is retried: the
    file keeps an earlier state, so that a restart repeats events, but misses none.
    """

    def __init__(self, path: str | None, base_url: str, selection: dict[str, list[str]], clock: Clock):
        self._path = resolve_directory(path) if path else None
        # Of temporary files. Other programs do not use this name, so what begins with it can be removed.
        self._prefix = f".clouddb-events.{os.path.basename(path or '')}."
        self._base_url = base_url
        self._selection = selection
        self._lock = ExitStack()
        self._clock = clock
        self._is_saved = True
        self._attempted_at = clock.monotonic()
        self._save_seconds = 0.0
        self._failing_since: float | None = None

    def load(self, first: State) -> State:
        """The state that an earlier run has saved, or else C(first). Raises InvalidOption, even if only writing fails."""
        state = first
        if self._path:
            self._lock_file(self._path)
            remove_temporary_files(os.path.dirname(self._path), self._prefix)
            try:
                with open_regular_file(self._path) as file:
                    state = self._decoded(file.readall())
            except FileNotFoundError:
                pass
            except OSError as error:
                problem = f"{self._path} can't be read: {error.strerror}. Set state_file to the path of a regular file."
                raise InvalidOption("state_file", problem) from error
        if failure := self._write(self._as_json(state)):
            problem = f"{self._path} can't be written: {failure.strerror}. Check its directory, or name another file."
            raise InvalidOption("state_file", problem) from failure
        return state

    def _lock_file(self, path: str) -> None:
        """Lock the state file until close(). Raises InvalidOption."""
        self.close()
        directory, name = os.path.split(path)
        try:
            lock = locked(os.path.join(directory, f".clouddb-{name}.lock"), Deadline.after(self._clock, 0))
            self._lock.enter_context(lock)
        except BlockingIOError:
            problem = f"{path} is in use by another event source. Name another file, or end the other source."
            raise InvalidOption("state_file", problem) from None
        except OSError as error:
            problem = f"{path} can't be written: {error.strerror}. Check its directory, or name another file."
            raise InvalidOption("state_file", problem) from error

    def close(self) -> None:
        """Release the state file."""
        self._lock.close()

    def mark_changed(self) -> None:
        """The state differs from the one that was saved."""
        self._is_saved = False

    def is_due(self, is_idle: bool) -> bool:
        """Whether a changed state is to be saved now: at once when nothing else is to be done, or else once a second.

        A large state is saved less often.
        """
        if self._path is None or self._is_saved:
            return False
        pause = max(0.0 if is_idle else SAVE_INTERVAL, self._save_seconds / SHARE_OF_SAVING)
        return self._clock.monotonic() >= self._attempted_at + pause

    async def save(self, state: State) -> None:
        """Save the state in a thread; when cancelled, wait for the thread, so that it overwrites no later state.

        An error is logged if the previous attempt had none, and so is the end of errors.
        """
        self._is_saved = True
        started = self._clock.monotonic()
        saving = asyncio.get_running_loop().run_in_executor(None, self._write, self._as_json(state))
        try:
            await asyncio.shield(saving)
        finally:
            error = await saving
            self._attempted_at = self._clock.monotonic()
            self._save_seconds = self._attempted_at - started
            self._is_saved = self._is_saved and error is None
            if error and self._failing_since is None:
                self._failing_since = self._attempted_at
                self._log(logging.WARNING, error)
            elif error is None and self._failing_since is not None:
                logger.warning("The state is saved again, after %.0f s.", self._attempted_at - self._failing_since)
                self._failing_since = None

    def save_now(self, state: State) -> None:
        """Save the state in this thread, for the last time."""
        if error := self._write(self._as_json(state)):
            self._log(logging.ERROR, error)

    def _write(self, content: dict[str, Any]) -> OSError | None:
        """Replace the file, readable by its owner only; returns the error."""
        if self._path:
            try:
                with temporary_file(self._path, self._prefix) as temporary:
                    temporary.replace_target(json.dumps(content).encode())
            except OSError as error:
                return error
        return None

    def _log(self, level: int, error: OSError) -> None:
        logger.log(
            level,
            "The state can't be saved to %s: %s. If the event source ends before saving succeeds, a restart emits the events "
            "since the last saved state again, with the same meta.uuid.",
            self._path,
            error.strerror,
        )

    def _as_json(self, state: State) -> dict[str, Any]:
        return {
            "base_url": self._base_url,
            "selection": self._selection,
            "new_since": state.new_since.isoformat(),
            "is_local_time": state.is_local_time,
            "projects": {project_id: followed.as_json() for project_id, followed in state.projects.items()},
        }

    def _decoded(self, content: bytes) -> State:
        """The inverse of _as_json(). Raises InvalidOption."""
        try:
            saved = json.loads(content)
            base_url, new_since = saved["base_url"], parse_timestamp(saved["new_since"])
            projects = {name: FollowedProject.from_json(name, each) for name, each in saved["projects"].items()}
            state = State(new_since, projects, saved["is_local_time"])
            # Version 2.0.0 did not save it.
            selection = saved.get("selection", self._selection)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            problem = (
                f"{self._path} does not hold the state of this event source. Name another file, or remove this one to "
                "start anew."
            )
            raise InvalidOption("state_file", problem) from None
        if base_url != self._base_url:
            problem = f"{self._path} is about another base_url, {base_url}. Name another file."
            raise InvalidOption("state_file", problem)
        if selection != self._selection:
            problem = (
                f"{self._path} is about other project_ids, actions or statuses. Name another file, or remove this one."
            )
            raise InvalidOption("state_file", problem)
        return state
