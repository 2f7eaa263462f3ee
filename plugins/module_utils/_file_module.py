# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that write a file, whose owner, group and mode Ansible sets. Keeps P7."""

import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from ._errors import SecretFileError, sentence
from ._module import ControlModule, RunFunction

# Of a new file: 0600. The group of an existing file, and whoever is in its access list, keep their permissions.
DEFAULT_MODE = "u=rw,o="
# By the word that Ansible's message about them begins with.
OPTIONS = {"chown": "owner", "chgrp": "group", "chmod": "mode", "mode": "mode", "chattr": "attributes"}


class FileModule(ControlModule):
    """A module with the option C(dest) and Ansible's options of files."""

    def __init__(self, **arguments: Any):
        self._attributes_diff: dict[str, dict[str, Any]] = {}
        self._is_setting_attributes = False
        super().__init__(add_file_common_args=True, **arguments)

    def run(self, run: RunFunction) -> None:
        """Call C(run(params, client, check_mode, set_attributes)), where C(set_attributes) is set_file_attributes()."""
        super().run(partial(run, set_attributes=self.set_file_attributes))

    def fail_json(self, msg: str, **result: Any) -> None:
        """End the task as failed. Raises SecretFileError while attributes are set, so that the caller can roll back."""
        if self._is_setting_attributes:
            raise self._attribute_error(msg, result)
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
        self._is_setting_attributes = True
        try:
            changed: bool = self.set_fs_attributes_if_different(wanted, False, diff)
        except OSError as error:
            # What chmod() raises, Ansible does not catch.
            raise self._attribute_error("chmod failed", {"path": path}) from error
        finally:
            self._is_setting_attributes = False
        if is_dest:
            self._attributes_diff = {side: {"path": path, **attributes} for side, attributes in diff.items()}
        return changed

    def _attribute_error(self, msg: str, result: Mapping[str, Any]) -> SecretFileError:
        """What Ansible says about the path, which may be temporary, as an error of C(dest) that names the option and the cause."""
        error = sys.exc_info()[1]
        cause = result.get("details") or (error.strerror if isinstance(error, OSError) else None)
        # Up to ansible-core 2.18, the message about chown ends with all that the exception says.
        problem = sentence(f"{msg.partition(':')[0]}: {cause}" if cause else msg)
        problem = problem.replace(str(result["path"]), self.params["dest"])
        option = OPTIONS.get(msg.split()[0], "owner, group, mode and attributes")
        # What chattr prints is no exception.
        is_denied = isinstance(error, PermissionError) or "Operation not permitted" in problem
        return SecretFileError(f"dest: {problem} Check {option}{', or set become' if is_denied else ''}.")

    def _with_attributes(self, result: dict[str, Any]) -> dict[str, Any]:
        """The result, whose diff also has the owner, group and mode of C(dest), as with the modules of files."""
        if "diff" not in result:
            return result
        sides = {side: {**result["diff"][side], **attributes} for side, attributes in self._attributes_diff.items()}
        return {**result, "diff": {**result["diff"], **sides}}
