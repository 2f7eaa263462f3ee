# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local connection that a test interrupts, and that runs modules by module_server.py."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
from itertools import takewhile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
name: hostile
short_description: A local connection that a test interrupts
description:
  - Runs commands on this machine, and fails when the test says so.
author: clouddb.control contributors
options:
  become_success_timeout:
    type: int
    default: 10
    description: As for local.
    vars:
      - name: ansible_local_become_success_timeout
  become_strip_preamble:
    type: bool
    default: true
    description: As for local.
    vars:
      - name: ansible_local_become_strip_preamble
extends_documentation_fragment:
  - connection_pipelining
"""


class Connection(LocalConnection):
    transport = "hostile"

    def exec_command(self, cmd: Any, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        event = self.event()
        if event == "unreachable":
            raise AnsibleConnectionFailure("The test made this host unreachable.")
        if event == "fails" and in_data:
            return 1, b"", b"The test made this module fail."
        result = self.run_module(cmd, in_data) if in_data else super().exec_command(cmd, in_data, sudoable)
        if event == "response_lost" and in_data:
            raise AnsibleConnectionFailure("The test made this host unreachable after the module had run.")
        return result

    def put_file(self, in_path: str, out_path: str) -> None:
        if self.event() == "unreachable":
            raise AnsibleConnectionFailure("The test made this host unreachable.")
        super().put_file(in_path, out_path)

    def event(self) -> str:
        """What happens to this host now; the use of the connection is recorded."""
        folder = Path(os.environ["ROTATION_TEST"])
        host = self._play_context.remote_addr
        with (folder / "trace").open("a") as trace:
            trace.write(json.dumps({"connected": host}) + "\n")
        switch = folder / "switch"
        return json.loads(switch.read_text()).get(host, "") if switch.exists() else ""

    def run_module(self, cmd: str, script: bytes) -> tuple[int, bytes, bytes]:
        _shell, _option, line = shlex.split(cmd)
        assignments = dict(word.split("=", 1) for word in takewhile(re.compile(r"\w+=").match, shlex.split(line)))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(os.environ["ROTATION_MODULE_SERVER"])
            with client.makefile("rwb") as stream:
                stream.write(json.dumps([{**os.environ, **assignments}, script.decode()]).encode() + b"\n")
                stream.flush()
                status, output, errors = json.loads(stream.readline())
        return status, output.encode("latin-1"), errors.encode("latin-1")
