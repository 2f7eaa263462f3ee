# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs commands in one shell, one after the other, as a reader does in a terminal."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from pathlib import Path

TIMEOUT = 300


class Shell:
    """A running bash: exported variables and background processes remain for the next command."""

    def __init__(self, directory: Path, env: dict[str, str]) -> None:
        self.directory = directory
        self._files = directory.parent / f"{directory.name}.shell"
        self._files.mkdir()
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=directory,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def run(self, command: str, typed: str = "") -> tuple[int, str]:
        """Run a command and return its exit status and its output, including standard error.

        The command reads C(typed), the input of the reader, from its standard input.
        """
        script, input_, printed = self._files / "command", self._files / "typed", self._files / "printed"
        script.write_text(f"{command}\n")
        input_.write_text(f"{typed}\n")
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"source {script} <{input_} >{printed} 2>&1; echo $?\n".encode())
        self._process.stdin.flush()
        status = self._read_line()
        return int(status), printed.read_text(errors="replace")

    def _read_line(self) -> bytes:
        line, end = b"", time.monotonic() + TIMEOUT
        assert self._process.stdout
        descriptor = self._process.stdout.fileno()
        while not line.endswith(b"\n"):
            ready = select.select([descriptor], [], [], max(0, end - time.monotonic()))[0]
            piece = os.read(descriptor, 100) if ready else b""
            if not piece:
                raise TimeoutError((self._files / "printed").read_text(errors="replace"))
            line += piece
        return line

    def close(self) -> None:
        """End the shell and the processes that are still in its session."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
