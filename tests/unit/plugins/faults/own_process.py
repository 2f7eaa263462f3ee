# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module's main() in a process of its own: one with limits of its own, or one that is killed at some line of the code."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.support.module_main import Ended, HasMain, run_main

PLUGINS = str(Path(api_key.__file__).parents[1])


def run_apart(module: HasMain, options: dict[str, Any], prepare: Callable[[], object]) -> Ended:
    """Call main() in a child process that C(prepare) has prepared."""

    def run(tell: Callable[[str], object]) -> None:
        prepare()
        tell(json.dumps(run_main(module, options)))

    return Ended(*json.loads(_in_child(run)))


def lines_since(module: HasMain, options: dict[str, Any], function: str) -> list[str]:
    """The lines of plugins/ that main() executes in a child process from when it enters C(function)."""

    def run(tell: Callable[[str], object]) -> None:
        _trace(function, lambda place: tell(f"{place}\n"))
        run_main(module, options)

    return _in_child(run).splitlines()


def run_until_killed(module: HasMain, options: dict[str, Any], function: str, line: int) -> str:
    """Call main() in a child process that gets SIGKILL just before so many-th line since C(function).

    The line; empty when main() came to its end.
    """

    def run(tell: Callable[[str], object]) -> None:
        places: list[str] = []

        def look(place: str) -> None:
            places.append(place)
            if len(places) > line:
                tell(place)
                os.kill(os.getpid(), signal.SIGKILL)

        _trace(function, look)
        run_main(module, options)

    return _in_child(run)


def _trace(function: str, look: Callable[[str], object]) -> None:
    """Have all lines of plugins/ looked at just before they are executed, from when C(function) is entered."""
    entered = False

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal entered
        if not frame.f_code.co_filename.startswith(PLUGINS):
            return None
        entered = entered or frame.f_code.co_name == function
        if entered and event == "line":
            look(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
        return trace

    sys.settrace(trace)


def _in_child(run: Callable[[Callable[[str], object]], None]) -> str:
    """What a child process told before it ended."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Other threads of this process have nothing to do with what the child does.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            run(lambda text: os.write(writing, text.encode()))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as told:
        text = told.read()
    os.waitpid(child, 0)
    return text
