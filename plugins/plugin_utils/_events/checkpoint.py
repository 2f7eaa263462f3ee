# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What outlives a restart of the event source, and when it is saved."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, NamedTuple

from ...module_utils._clock import Clock
from ...module_utils._errors import InvalidOption
from ...module_utils._timestamps import parse_timestamp
from ...module_utils._untrusted import is_id
from .changes import SeenOperations
from .state_file import StateFile

# In seconds, unless there is time to save more often.
SAVE_INTERVAL = 1.0


class State(NamedTuple):
    """When the projects were last listed, by the service's clock, and what was seen of each one's operations, by its id."""

    listed_at: datetime | None
    projects: dict[str, SeenOperations]


class Checkpoint:
    """Saves the state in the file C(path), if there is one. load() and the saving methods raise InvalidOption."""

    def __init__(self, path: str | None, base_url: str, clock: Clock):
        self._file = StateFile(path) if path else None
        self._base_url = base_url
        self._clock = clock
        self._is_saved = True
        self._saved_at = clock.monotonic()

    def load(self) -> State:
        """The state that an earlier run has saved."""
        saved = self._file.read() if self._file else None
        if self._file is None or saved is None:
            return State(None, {})
        try:
            base_url = saved["base_url"]
            state = State(
                saved["listed_at"] and parse_timestamp(saved["listed_at"]),
                {project_id: SeenOperations.from_json(seen) for project_id, seen in saved["projects"].items()},
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            problem = f"{self._file.path} does not hold the state of this event source; name another file"
            raise InvalidOption("state_file", problem) from None
        if not all(map(is_id, state.projects)):
            raise InvalidOption(
                "state_file", f"{self._file.path} has a project whose id is not an id; name another file"
            )
        if base_url != self._base_url:
            problem = f"{self._file.path} is about another base_url, {base_url}; name another file"
            raise InvalidOption("state_file", problem)
        return state

    def mark_changed(self) -> None:
        """The state differs from the one that was saved."""
        self._is_saved = False

    def is_due(self, is_idle: bool) -> bool:
        """Whether a changed state is to be saved now: at once when nothing else is to be done, or else once a second."""
        is_time = is_idle or self._clock.monotonic() >= self._saved_at + SAVE_INTERVAL
        return self._file is not None and not self._is_saved and is_time

    async def save(self, state: State) -> None:
        """Save the state in a thread; when cancelled, wait for the thread, so that it overwrites no later state."""
        if self._file is None:
            return
        self._is_saved = True
        saving = asyncio.get_running_loop().run_in_executor(None, self._file.write, self._as_json(state))
        try:
            await asyncio.shield(saving)
        finally:
            await saving
        self._saved_at = self._clock.monotonic()

    def save_now(self, state: State) -> None:
        """Save the state in this thread."""
        if self._file:
            self._file.write(self._as_json(state))

    def _as_json(self, state: State) -> dict[str, Any]:
        return {
            "base_url": self._base_url,
            "listed_at": state.listed_at and state.listed_at.isoformat(),
            "projects": {project_id: seen.as_json() for project_id, seen in state.projects.items()},
        }
