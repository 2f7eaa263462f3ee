# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base class of all errors, which renders itself as the result of a failed task, and two shared errors. Keeps P11.

No error ever holds a header or a key. Modules load this file before anything that fails on a Python older than 3.9: without
future annotations, which Python 3.6 does not know.
"""

import json
import sys
from typing import Any, Optional

if sys.version_info < (3, 9):  # noqa: UP036
    version = ".".join(map(str, sys.version_info[:3]))
    message = (
        f"The module needs Python 3.9 or later, and {sys.executable} is Python {version}. "
        "Set ansible_python_interpreter to a later one on the host."
    )
    sys.stdout.write(json.dumps({"failed": True, "msg": message, "failure": {"kind": "unsupported_python"}}))
    raise SystemExit(1)

from ._untrusted import MAX_MESSAGE_LENGTH, displayable, walk

# The result of a task, or a part of it.
Result = dict[str, Any]


def sentence(text: object) -> str:
    """The text, ended by one full stop or question mark, so that another sentence can follow it."""
    complete = str(text).rstrip(".")
    return complete if complete.endswith("?") else f"{complete}."


def will_fail(problem: object, remedy: str = "creates it") -> str:
    """The warning of check mode about a problem that an earlier task of the play may solve."""
    return f"{sentence(problem)} Unless an earlier task {remedy}, this task will fail."


class ClouddbError(Exception):
    """Base of all errors of this collection.

    The message consists of complete sentences. C(details) become RV(failure), C(result) holds further fields of the task's result.
    Texts of the service in the message and in C(details) are made displayable here.
    """

    kind = "unexpected"
    transient = False

    def __init__(self, message: str, details: Optional[dict[str, Any]] = None, result: Optional[dict[str, Any]] = None):
        super().__init__(displayable(message, MAX_MESSAGE_LENGTH))
        self.details: dict[str, Any] = walk(details or {}, lambda text: displayable(text, MAX_MESSAGE_LENGTH))
        self.result = result or {}

    def as_result(self) -> dict[str, Any]:
        """The arguments of C(fail_json): C(msg), C(failure) and the further fields of the result."""
        return {**self.result, "msg": str(self), "failure": {"kind": self.kind, **self.details}}


class InvalidOption(ClouddbError):
    """An option's value is wrong; raised before any request that changes something."""

    kind = "invalid_option"

    def __init__(self, option: str, problem: str):
        super().__init__(sentence(f"{option}: {problem}"), {"option": option})


class SecretFileError(ClouddbError):
    """The file that a secret is to be written to cannot be read or written."""

    kind = "secret_file"
