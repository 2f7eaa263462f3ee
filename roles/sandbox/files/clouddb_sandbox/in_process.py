# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox inside the process that uses it: unit tests talk to the real server over a real socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .app import create_app
from .server import Server, base_url, listening_socket
from .settings import Settings


@contextmanager
def sandbox_server(settings: Settings) -> Iterator[str]:
    """Run a sandbox in a thread of its own; yields its base URL."""
    listening = threading.Event()
    with listening_socket("127.0.0.1", 0) as listener:
        server = Server(create_app(settings), listening.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        if not listening.wait(10):
            raise RuntimeError("the sandbox did not start within 10 seconds")
        try:
            yield base_url(listener)
        finally:
            server.should_exit = True
            thread.join(10)
