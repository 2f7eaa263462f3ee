# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox server in a thread of the calling process, for unit tests."""

from __future__ import annotations

import asyncio
import importlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .app import create_app
from .server import Server, base_url, bind_socket
from .settings import Settings

# A server imports these when it starts. ansible-test runs each test in a fork, where that takes longer than the start itself.
for name in ("lifespan.on", "loops.auto", "protocols.http.auto", "protocols.websockets.auto"):
    importlib.import_module(f"uvicorn.{name}")


@contextmanager
def run_in_thread(settings: Settings) -> Iterator[str]:
    """Run a sandbox in a thread. Yields its base URL."""
    with bind_socket("127.0.0.1", 0) as listener:
        server = ThreadedServer(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        if not server.listening.wait(60):
            raise RuntimeError("The sandbox did not start within 60 seconds.")
        try:
            yield base_url(listener)
        finally:
            server.stop()
            thread.join(60)


class ThreadedServer(Server):
    """A server that stops at once, without waiting for open connections, to keep tests fast."""

    def __init__(self, settings: Settings) -> None:
        self.listening = threading.Event()
        super().__init__(create_app(settings), self.on_start)

    def on_start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.stopping = asyncio.Event()
        self.listening.set()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.stopping.set)

    async def main_loop(self) -> None:
        await self.stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await self.lifespan.shutdown()
