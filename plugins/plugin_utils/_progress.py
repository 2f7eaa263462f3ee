# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the progress of a wait while its module runs on this machine: the lines that it writes to a named pipe. Keeps P10."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

from ansible import constants
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._operations.progress import VARIABLE
from ._fork import ForkAction

# In seconds. The thread that shows the lines ends at once, unless nobody reads what it shows.
JOIN_TIMEOUT = 2.0
# A line of its own, which no module writes.
END = b"\0\n"

STDERR: int | None = None
# Ansible loads this module before it forks the worker of the task. Since core 2.19, the standard error of workers is /dev/null.
with contextlib.suppress(AttributeError, OSError):
    STDERR = os.dup(sys.stderr.fileno())


class ProgressAction(ForkAction):
    """The action of a module that waits."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        # The target does not log the task, because the body of a request may hold secrets.
        task_vars = {**(task_vars or {}), "ansible_no_target_syslog": True}
        if not self._shows_progress(task_vars):
            return super().run(tmp, task_vars)
        environment = self._task.environment
        with shown_lines() as pipe:
            try:
                self._task.environment = [*(environment or []), {VARIABLE: pipe}]
                return super().run(tmp, task_vars)
            finally:
                self._task.environment = environment

    def _shows_progress(self, task_vars: dict[str, Any]) -> bool:
        task = self._task
        if self._connection.transport != "local" or task.async_val or task.check_mode or task.no_log:
            return False
        if "json" in constants.DEFAULT_STDOUT_CALLBACK:
            return False
        progress = task.args.get("progress")
        if progress is None:
            progress = self._templar.template(task_vars.get("clouddb_progress", True))
        return bool(boolean(progress, strict=False))


@contextlib.contextmanager
def shown_lines() -> Iterator[str]:
    """Yield the path of a named pipe, and show the lines that are written to it. If there can be none, nothing is shown."""
    with contextlib.ExitStack() as stack:
        path = os.devnull
        with contextlib.suppress(OSError):
            # In the directory that Ansible removes when it ends, even if this process is killed.
            parent = constants.DEFAULT_LOCAL_TMP
            directory = stack.enter_context(tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True))
            os.mkfifo(name := os.path.join(directory, "progress"), 0o600)
            # With a writer of its own, the pipe never ends.
            pipe = stack.enter_context(open(name, "r+b", buffering=0))
            thread = threading.Thread(target=_show_lines, args=(pipe,), name="clouddb.control progress", daemon=True)
            # A signal that this thread receives would not interrupt the main thread, which waits for the module.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                thread.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            stack.callback(thread.join, JOIN_TIMEOUT)
            stack.callback(pipe.write, b"\n" + END)
            path = name
        yield path


def _show_lines(pipe: BinaryIO) -> None:
    for line in pipe:
        if line == END:
            return
        text = line.decode(errors="replace").strip()
        with contextlib.suppress(OSError):
            if text:
                show(text)


def show(line: str) -> None:
    """Write the line to Ansible's log, and to standard error unless its reader has stopped reading.

    Ansible's own Display would hand it to the thread that receives the results of tasks, which ends if the output is closed.
    """
    logging.getLogger("ansible").info(line)
    if STDERR is not None and select.select([], [STDERR], [], 0)[1]:
        os.write(STDERR, f"{line}\n".encode())
