# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs modules in forks of a Python that has imported what they need: ``module_server.py SOCKET``.

A module costs 20 ms instead of 400 ms of CPU time, which makes a matrix of real rotations affordable. Each request is what
Ansible sends to the Python interpreter of a host: the variables of the task's environment, and the module as a script.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any, BinaryIO

PRELOADED = (
    "ansible.module_utils.basic",
    "ansible.module_utils.urls",
    "concurrent.futures",
    "requests",
    "runpy",
    "zipfile",
)


def serve(path: str) -> None:
    """Fork a process for each connection, until standard input is closed, at the latest by the end of the parent."""
    for name in PRELOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _address = listener.accept()
            if os.fork() == 0:
                try:
                    respond(connection)
                finally:
                    os._exit(0)
            connection.close()


def respond(connection: socket.socket) -> None:
    """Run one module, and send its exit status, standard output and standard error."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection, connection.makefile("rwb") as stream:
        request = json.loads(stream.readline())
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            child = os.fork()
            if child == 0:
                run(request, output, errors)
            _child, status = os.waitpid(child, 0)
            texts = []
            for file in (output, errors):
                file.seek(0)
                texts.append(file.read().decode("latin-1"))
        stream.write(json.dumps([os.waitstatus_to_exitcode(status), *texts]).encode() + b"\n")


def run(request: dict[str, Any], output: BinaryIO, errors: BinaryIO) -> None:
    """Run the script as a Python interpreter would, and end this process."""
    status = 1
    try:
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = [""]
        exec(compile(request["script"], "<stdin>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        status = 0
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
