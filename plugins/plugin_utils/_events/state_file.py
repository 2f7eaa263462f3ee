# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A JSON file that a process takes up again after a restart: replaced as a whole or not at all, also in a crash."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from ...module_utils._errors import InvalidOption


class StateFile:
    """The file that the option C(state_file) names. Both methods raise InvalidOption."""

    def __init__(self, path: str):
        self.path = os.path.abspath(os.path.expanduser(path))
        self._lock = threading.Lock()

    def read(self) -> dict[str, Any] | None:
        """What was written last; None when there is no file yet."""
        try:
            with open(self.path, encoding="utf-8") as file:
                state = json.load(file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidOption("state_file", f"{self.path} can't be read: {error.strerror}") from error
        except ValueError:
            state = None
        if not isinstance(state, dict):
            raise InvalidOption(
                "state_file",
                f"{self.path} holds something else than a state; name another file, or remove it to begin anew",
            )
        return state

    def write(self, state: dict[str, Any]) -> None:
        """Put the state on the disk, for its owner only."""
        temporary = self.path + ".new"
        content = json.dumps(state).encode()
        try:
            # One at a time: the thread of a cancelled call may still be at it.
            with self._lock:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with open(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self.path)
                folder = os.open(os.path.dirname(self.path), os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            raise InvalidOption("state_file", f"{self.path} can't be written: {error.strerror}") from error
