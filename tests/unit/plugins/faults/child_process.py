# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module's main() in a child process that is killed at a given line of the code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.support.module_main import HasMain, run_main

PLUGINS = str(Path(api_key.__file__).parents[1])

# Sends text from the child process to this one.
Send = Callable[[str], object]


def lines_since(module: HasMain, options: dict[str, Any], function: str) -> list[str]:
    """The lines of plugins/ that main() executes in a child process from the call of C(function) on, each as C(file:line)."""

    def run(send: Send) -> None:
        _trace(function, lambda line: send(f"{line}\n"))
        run_main(module, options)

    return in_child(run).splitlines()


def run_until_killed(module: HasMain, options: dict[str, Any], function: str, index: int) -> str:
    """Call main() in a child process that gets SIGKILL just before it executes C(lines_since(...)[index]).

    Returns that line; empty if main() returned before.
    """

    def run(send: Send) -> None:
        executed = 0

        def on_line(line: str) -> None:
            nonlocal executed
            if executed == index:
                send(line)
                os.kill(os.getpid(), signal.SIGKILL)
            executed += 1

        _trace(function, on_line)
        run_main(module, options)

    return in_child(run)


def _trace(function: str, on_line: Callable[[str], object]) -> None:
    """Call C(on_line) just before each line of plugins/ is executed, from the call of C(function) on."""
    entered = False

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal entered
        if not frame.f_code.co_filename.startswith(PLUGINS):
            return None
        entered = entered or frame.f_code.co_name == function
        if entered and event == "line":
            on_line(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        return trace

    # Requests are sent in threads of their own.
    threading.settrace(trace)
    sys.settrace(trace)


def in_child(run: Callable[[Send], object]) -> str:
    """Call C(run) in a child process; returns what it sent before the process ended."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of a fork while there are other threads. The child does not use them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            run(lambda text: os.write(writing, text.encode()))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text
