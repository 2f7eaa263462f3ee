# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The class of all errors, which renders itself as the result of a failed task, and the kinds of failures. Keeps P11.

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

from typing import Literal

from ._untrusted import MAX_MESSAGE_LENGTH, displayable, walk

# What RV(failure.kind) can be. The page Kinds of failure lists the same kinds.
FailureKind = Literal[
    "ambiguous_match",  # several resources match what a task selects
    "deployment_refused",  # a new key is not deployed to a host
    "http_status",  # an error status without a kind of its own
    "incomplete_list",  # what is missing may be what the service could not list
    "invalid_option",
    "locked",  # the project was locked until lock_timeout
    "missing_library",
    "name_changed",  # the service stores the name of a new key in another form
    "no_match",  # nothing matches what a task selects
    "not_found",  # 404, or no project, branch or user of this name
    "orphaned_key",  # a key is active that nobody has, or that was to be revoked
    "other_key",  # a file has the secret of another key
    "refused",  # the service would refuse it, as what it lists shows
    "rotation_failed",  # a new key was not deployed to all hosts
    "rotation_refused",  # a key is not created or revoked, for lack of confirmations
    "secret_file",
    "secret_unavailable",  # a key exists, and its secret is lost
    "several_keys",  # several keys have the name of the one to revoke
    "unauthorized",  # 401
    "unexpected",  # a defect of the collection
    "unexpected_response",  # a response that api.md does not describe
    "unknown_outcome",  # nothing shows whether a request was carried out
    "unreachable",  # no complete response
    "unsupported_python",
    "wait_failed",  # operations failed, or were unfinished at the deadline
    "wrong_scope",  # a new key can access more than was asked for
]
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
    """An error of this collection. It has a class of its own if somebody catches it by its type.

    The message consists of complete sentences. C(details) become RV(failure), C(result) holds further fields of the task's result.
    Texts of the service in the message and in C(details) are made displayable here.
    """

    transient = False

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        details: Optional[dict[str, Any]] = None,
        result: Optional[Result] = None,
    ):
        super().__init__(displayable(message, MAX_MESSAGE_LENGTH))
        self.kind: FailureKind = kind
        self.details: dict[str, Any] = walk(details or {}, lambda text: displayable(text, MAX_MESSAGE_LENGTH))
        self.result = result or {}

    def add(self, before: str = "", after: str = "") -> None:
        """Add sentences to the message."""
        message = " ".join(text for text in (before, str(self), after) if text)
        self.args = (displayable(message, MAX_MESSAGE_LENGTH),)

    def as_result(self) -> dict[str, Any]:
        """The arguments of C(fail_json): C(msg), C(failure) and the further fields of the result."""
        return {**self.result, "msg": str(self), "failure": {"kind": self.kind, **self.details}}


class InvalidOption(ClouddbError):
    """An option's value is wrong; raised before any request that changes something."""

    def __init__(self, option: str, problem: str):
        super().__init__("invalid_option", sentence(f"{option}: {problem}"), {"option": option})


class SecretFileError(ClouddbError):
    """The file that a secret is to be written to cannot be read or written."""

    def __init__(self, message: str, details: Optional[dict[str, Any]] = None, result: Optional[Result] = None):
        super().__init__("secret_file", message, details, result)
