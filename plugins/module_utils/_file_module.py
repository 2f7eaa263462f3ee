# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that write a file, whose owner, group and mode Ansible sets. Keeps P7."""

import os
from functools import partial
from typing import Any

from ._errors import SecretFileError, sentence
from ._module import ControlModule, RunFunction

# Of a new file: 0600. The group of an existing file, and whoever is in its access list, keep their permissions.
DEFAULT_MODE = "u=rw,o="


class FileModule(ControlModule):
    """A module with the option C(dest) and Ansible's options of files."""

    def __init__(self, **arguments: Any):
        self._attributes_diff: dict[str, dict[str, Any]] = {}
        super().__init__(add_file_common_args=True, **arguments)

    def run(self, run: RunFunction) -> None:
        """Call C(run(params, client, check_mode, set_attributes)), where C(set_attributes) is set_file_attributes()."""
        super().run(partial(run, set_attributes=self.set_file_attributes))

    def fail_json(self, msg: str, **result: Any) -> None:
        """End the task as failed. Raises SecretFileError for what Ansible says about a file, so that its caller can roll back."""
        # Only what Ansible says about the owner, the group or the mode of a file names its path, which may be temporary.
        if "path" in result and "failure" not in result:
            problem = f"{msg}: {result['details']}" if result.get("details") else msg
            text = sentence(problem.replace(str(result["path"]), self.params["dest"]))
            raise SecretFileError(f"dest: {text} Check owner, group, mode and attributes.")
        super().fail_json(msg, **self._with_attributes(result))

    def exit_json(self, **result: Any) -> None:
        """End the task as succeeded."""
        super().exit_json(**self._with_attributes(result))

    def set_file_attributes(self, path: str) -> bool:
        """Set owner, group and mode of the path as the options say, or DEFAULT_MODE; whether that changed it. Raises SecretFileError."""
        params = {**self.params, "mode": self.params["mode"] if self.params["mode"] is not None else DEFAULT_MODE}
        is_dest = os.path.basename(path) == os.path.basename(params["dest"])
        if not is_dest:
            # A temporary file with an attribute such as +i could not be renamed.
            params["attributes"] = None
        wanted = self.load_file_common_arguments(params, path=path)
        diff: dict[str, dict[str, Any]] = {}
        changed: bool = self.set_fs_attributes_if_different(wanted, False, diff)
        if is_dest:
            self._attributes_diff = {side: {"path": path, **attributes} for side, attributes in diff.items()}
        return changed

    def _with_attributes(self, result: dict[str, Any]) -> dict[str, Any]:
        """The result, whose diff also has the owner, group and mode of C(dest), as with the modules of files."""
        if "diff" not in result:
            return result
        sides = {side: {**result["diff"][side], **attributes} for side, attributes in self._attributes_diff.items()}
        return {**result, "diff": {**result["diff"], **sides}}
