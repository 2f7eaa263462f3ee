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
import socketserver
import sys
import tempfile
import traceback

PRELOADED = (
    "ansible.module_utils.basic",
    "ansible.module_utils.urls",
    "concurrent.futures",
    "requests",
    "runpy",
    "zipfile",
)


class ModuleServer(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Forks a process for each connection."""


class Module(socketserver.StreamRequestHandler):
    """Runs one module as a Python interpreter would, and sends its exit status, standard output and standard error."""

    def handle(self) -> None:
        environment, script = json.loads(self.rfile.readline())
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [""]
        with open(os.devnull) as nothing, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            for descriptor, file in enumerate((nothing, output, errors)):
                os.dup2(file.fileno(), descriptor)
            status = run(script)
            texts = []
            for stream, file in ((sys.stdout, output), (sys.stderr, errors)):
                stream.flush()
                file.seek(0)
                texts.append(file.read().decode("latin-1"))
        self.wfile.write(json.dumps([status, *texts]).encode() + b"\n")


def run(script: str) -> int:
    try:
        exec(compile(script, "<stdin>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    except SystemExit as exit:
        return exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    for name in PRELOADED:
        importlib.import_module(name)
    # Until standard input is closed, at the latest by the end of the parent.
    with ModuleServer(sys.argv[1], Module) as server:
        while server in select.select([server, sys.stdin], [], [])[0]:
            server.handle_request()
            server.service_actions()
