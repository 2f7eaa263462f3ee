# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON file that the option state_file names."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from ...module_utils._atomic_file import remove_temporary_files, temporary_file
from ...module_utils._errors import InvalidOption


class StateFile:
    """A JSON object in a file that belongs to one process at a time. Both methods raise InvalidOption."""

    def __init__(self, path: str):
        self.path = os.path.abspath(os.path.expanduser(path))
        self._folder, name = os.path.split(self.path)
        self._prefix = f".{name}."

    def read(self) -> dict[str, Any] | None:
        """The object that was written last; None when there is no file yet."""
        # If they can't be removed, the next write reports why.
        with suppress(OSError):
            remove_temporary_files(self._folder, self._prefix)
        try:
            with open(self.path, encoding="utf-8") as file:
                content = json.load(file)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidOption("state_file", f"{self.path} can't be read: {error.strerror}") from error
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise InvalidOption(
                "state_file",
                f"{self.path} does not hold a JSON object; name another file, or remove this one to start anew",
            )
        return content

    def write(self, content: dict[str, Any]) -> None:
        """Replace the file, readable by its owner only."""
        try:
            with temporary_file(self.path, self._prefix) as temporary:
                temporary.replace_target(json.dumps(content).encode())
        except OSError as error:
            raise InvalidOption("state_file", f"{self.path} can't be written: {error.strerror}") from error
