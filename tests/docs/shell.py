# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs commands in one shell, one after the other, as a reader does in a terminal."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pexpect import ExceptionPexpect
from pexpect.popen_spawn import PopenSpawn

TIMEOUT = 300


class Shell:
    """A running bash: exported variables and background processes remain for the next command."""

    def __init__(self, directory: Path, env: dict[str, str]) -> None:
        self.directory = directory
        self._files = directory.parent / f"{directory.name}.shell"
        self._files.mkdir()
        bash = ["bash", "-c", "exec bash --norc 2>/dev/null"]
        self._bash = PopenSpawn(bash, TIMEOUT, cwd=str(directory), env=env, preexec_fn=os.setsid)

    def run(self, command: str, typed: str = "") -> tuple[int, str]:
        """Run a command and return its exit status and its output, including standard error.

        The command reads C(typed), the input of the reader, from its standard input.
        """
        script, input_, printed = self._files / "command", self._files / "typed", self._files / "printed"
        script.write_text(f"{command}\n")
        input_.write_text(f"{typed}\n")
        self._bash.sendline(f"source {script} <{input_} >{printed} 2>&1; echo $?")
        try:
            self._bash.expect(rb"(\d+)\n")
        except ExceptionPexpect as error:
            raise RuntimeError(printed.read_text(errors="replace")) from error
        return int(self._bash.match[1]), printed.read_text(errors="replace")

    def close(self) -> None:
        """End the shell and the processes that are still in its session."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()
