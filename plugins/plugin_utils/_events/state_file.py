# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON file that the option state_file names. Keeps P7."""

from __future__ import annotations

import json
import os
from typing import Any

from ...module_utils._errors import InvalidOption
from ...module_utils._files.atomic_file import remove_temporary_files, temporary_file
from ...module_utils._files.regular_file import open_regular_file, resolve_folder


class StateFile:
    """A JSON object in a file that belongs to one process at a time."""

    def __init__(self, path: str):
        self.path = resolve_folder(path)
        self._folder, name = os.path.split(self.path)
        # Other programs do not use this name, so what begins with it can be removed.
        self._prefix = f".clouddb-events.{name}."

    def read(self) -> dict[str, Any] | None:
        """The object that was written last; None when there is no file yet. Raises InvalidOption."""
        remove_temporary_files(self._folder, self._prefix)
        try:
            with open_regular_file(self.path) as file:
                content = json.loads(file.readall())
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = f"{self.path} can't be read: {error.strerror}. Set state_file to the path of a regular file."
            raise InvalidOption("state_file", problem) from error
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            problem = f"{self.path} does not hold a JSON object. Name another file, or remove this one to start anew."
            raise InvalidOption("state_file", problem)
        return content

    def write(self, content: dict[str, Any]) -> None:
        """Replace the file, readable by its owner only. Raises OSError."""
        with temporary_file(self.path, self._prefix) as temporary:
            temporary.replace_target(json.dumps(content).encode())
