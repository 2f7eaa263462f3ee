# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP server that runs the application."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from .paths import BASE_PATH


class Server(uvicorn.Server):
    """uvicorn with a callback when it listens, and one that tells it to end, called ten times a second.

    The application knows it, so that faults can close connections.
    """

    def __init__(
        self, app: FastAPI, on_listening: Callable[[], None], should_end: Callable[[], bool] = lambda: False
    ) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            # Longer than usual poll intervals, so that polling clients do not reuse a connection that is being closed.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)
        self.on_listening = on_listening
        self.should_end = should_end
        app.state.server = self

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_listening()

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self.should_end()


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a bound socket; the server starts listening on it. Port 0 means any free port. Raises OSError."""
    family, kind, protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def base_url(listener: socket.socket) -> str:
    """Return the API's base URL for clients on this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{BASE_PATH}"
