# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the main() of a module as a task would, in this process."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from types import ModuleType
from typing import Any, NamedTuple, Protocol
from unittest import mock

import pytest
from ansible.module_utils import basic
from ansible.module_utils.common import warnings

from ansible_collections.clouddb.control.tests.unit.support.return_values import undocumented_fields

try:
    from ansible.module_utils import secrets
    from ansible.module_utils._internal import _secrets
except ImportError:  # ansible-core up to 2.21
    secrets = None

try:
    from ansible.module_utils import _internal
    from ansible.module_utils.testing import patch_module_args
except ImportError:  # ansible-core up to 2.18
    _internal = None

    @contextmanager
    def patch_module_args(args: dict[str, Any] | None = None) -> Iterator[None]:
        with mock.patch.object(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": args or {}}).encode()):
            yield


# Up to ansible-core 2.18, Ansible itself refuses a null in a list, and C(failure) does not name the option.
NAMES_NULLS_IN_LISTS = _internal is not None


class Outcome(NamedTuple):
    """The outcome of a module: C(result) is what later tasks get, C(printed) all of its output as Ansible shows it.

    C(registered) are the secrets that Ansible masks in all later output, from ansible-core 2.22 on.
    """

    exit_code: int
    result: dict[str, Any]
    printed: str
    registered: frozenset[str] = frozenset()

    @property
    def failed(self) -> bool:
        return bool(self.result.get("failed"))

    @property
    def failure(self) -> dict[str, Any]:
        """The structured failure of a failed task."""
        assert (self.failed, self.exit_code) == (True, 1), self.printed
        failure: dict[str, Any] = self.result["failure"]
        return failure

    @property
    def success(self) -> dict[str, Any]:
        """The result of a task that did not fail."""
        assert (self.failed, self.exit_code) == (False, 0), self.printed
        return self.result


class HasMain(Protocol):
    """A module, or a stub of one."""

    @property
    def main(self) -> Callable[[], object]:
        """Runs the module."""


@functools.cache
def arguments_of(module: HasMain) -> Mapping[str, Any]:
    """The arguments that AnsibleModule gets from the module and its base class."""
    with mock.patch.object(basic.AnsibleModule, "__init__", side_effect=StopIteration) as init:
        with pytest.raises(StopIteration):
            module.main()
    return dict(init.call_args.kwargs)


@functools.cache
def defaults_of(module: HasMain) -> Mapping[str, Any]:
    """The options of the module with their defaults, as run() gets those that a task does not set."""
    return {name: option.get("default") for name, option in arguments_of(module)["argument_spec"].items()}


def run_main(module: HasMain, options: dict[str, Any], check_mode: bool = False, diff: bool = False) -> Outcome:
    """Call the module's main() with these options and capture what it prints.

    Whatever error a test causes, the fields of its C(failure) have to be documented.
    """
    args = {**options, "_ansible_check_mode": check_mode, "_ansible_diff": diff, "_ansible_remote_tmp": "/tmp"}
    # ansible-core 2.21 returns the options of a task only when it is asked to.
    if "inject_invocation" in basic.PASS_VARS:
        args["_ansible_inject_invocation"] = True
    output = io.StringIO()
    # Ansible collects warnings for the whole process, not for a task.
    for collected in (warnings._global_warnings, warnings._global_deprecations):
        collected.clear()
    with no_registered_secrets():
        with ExitStack() as stack:
            stack.enter_context(patch_module_args(args))
            if _internal:
                # If the controller's code was imported in this process, warnings would be displayed instead of returned.
                stack.enter_context(mock.patch.object(_internal, "is_controller", False))
            stack.enter_context(redirect_stdout(output))
            stack.enter_context(redirect_stderr(output))
            exit_ = stack.enter_context(pytest.raises(SystemExit))
            module.main()
        *lines, last = output.getvalue().strip().splitlines()
        result = json.loads(last)
        registered = frozenset(result.pop("_ansible_new_secrets", ()))
        # Ansible masks what it shows, and not what later tasks get.
        printed = "\n".join([*lines, json.dumps(result)])
        if secrets:
            printed = secrets.mask_secrets(printed)
    if isinstance(module, ModuleType):
        assert undocumented_fields(module, {"failure": result.get("failure")}) == []
    return Outcome(int(exit_.value.code or 0), result, printed, registered)


@contextmanager
def no_registered_secrets() -> Iterator[None]:
    """Let a task begin without the secrets of others: Ansible collects them for the whole process, too."""
    if not secrets:
        yield
        return
    with mock.patch.multiple(
        secrets._secret_masker,
        _matcher=_secrets._Fixed4Matcher(),
        _secrets=set(),
        _forms=set(),
        _json_forms={},
        _new_secret_trackers=set(),
    ):
        yield
