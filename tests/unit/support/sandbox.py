# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real sandbox in this process, and a client of its API and control endpoints."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio.to_thread

sys.path.insert(0, str(Path(__file__).parents[3] / "roles" / "sandbox" / "files"))

from clouddb_sandbox.app import create_app, open_store
from clouddb_sandbox.paths import BASE_PATH, CONTROL_PATH
from clouddb_sandbox.seed_models import validate_seed
from clouddb_sandbox.server import Server, base_url, bind_socket
from clouddb_sandbox.settings import Settings

# In the main thread, because imports in the thread of a sandbox could wait for those of a test.
for name in ("lifespan.on", "loops.auto", "protocols.http.auto", "protocols.websockets.auto"):
    importlib.import_module(f"uvicorn.{name}")


async def run_here(function: Callable[..., Any], *arguments: Any, **_options: Any) -> Any:
    """The function's result."""
    return function(*arguments)


# The endpoints are quick, and threads of their own would take a fifth of the time of a test.
anyio.to_thread.run_sync = run_here  # type: ignore[assignment]

API_KEY = "first-key-of-the-account-0123456789abcdef0123456789abcdef012345"


class Sandbox:
    """Client of a running sandbox, independent of the code under test: C(api) for the API, C(control) for control endpoints.

    It calls the application without HTTP, in a third of the time.
    """

    def __init__(self, base_url: str, server: ThreadedServer):
        self.base_url = base_url
        self.api_key = API_KEY
        self._server = server

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return self._send(method, BASE_PATH + path, body)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        return self._send(method, CONTROL_PATH + path, body)

    def fault(self, kind: str, **rule: Any) -> None:
        self.control("POST", "/faults", {"kind": kind, **rule})

    def plan(self, *timeline: tuple[float, str], **plan: Any) -> None:
        self.control("POST", "/operation_plans", {"timeline": list(timeline), **plan})

    def advance(self, seconds: float) -> None:
        self.control("PUT", "/clock", {"advance": seconds})

    def requests(self) -> list[dict[str, Any]]:
        """The API requests so far, as the sandbox has logged them."""
        return [
            entry for entry in self.control("GET", "/requests")["requests"] if not entry["path"].startswith("/_sandbox")
        ]

    def sent(self) -> list[str]:
        """The requests of the code under test, each as C(METHOD path), the path without the base path."""
        ours = (entry for entry in self.requests() if entry["user_agent"].startswith("clouddb.control/"))
        return [f"{entry['method']} {entry['path'].removeprefix('/api/v2')}" for entry in ours]

    def accepts(self, secret: str) -> bool:
        """Whether the service accepts this secret as a bearer key."""
        return self._server.call("GET", f"{BASE_PATH}/projects", secret)[0] == 200

    def keys(self, name: str) -> list[dict[str, Any]]:
        """The active keys with this name."""
        return [key for key in self.api("GET", "/api_keys") if key["name"] == name]

    def _send(self, method: str, path: str, body: Any) -> Any:
        status, content = self._server.call(method, path, API_KEY, body)
        assert 200 <= status < 300, (status, content)
        return json.loads(content)


@contextmanager
def running_sandbox(folder: Path, **seed: Any) -> Iterator[Sandbox]:
    """Run a sandbox whose clock is stopped until it is advanced, with an account created from C(seed)."""
    settings = Settings(folder / "sandbox.db", API_KEY, seed, speed=0)
    settings.database.write_bytes(new_account(json.dumps(seed)))
    with run_in_thread(settings) as (base_url, server):
        yield Sandbox(base_url, server)


@functools.cache
def new_account(seed: str) -> bytes:
    """The database of an account with this seed. Its creation takes longer than most tests, so they copy it."""
    with TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "sandbox.db", API_KEY, json.loads(seed), speed=0)
        open_store(settings, validate_seed(settings.seed)).close()
        return settings.database.read_bytes()


@contextmanager
def run_in_thread(settings: Settings) -> Iterator[tuple[str, ThreadedServer]]:
    """Run a sandbox in a thread. Yields its base URL and the server."""
    with bind_socket("127.0.0.1", 0) as listener:
        server = ThreadedServer(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        if not server.listening.wait(60):
            raise RuntimeError("The sandbox did not start within 60 seconds.")
        try:
            yield base_url(listener), server
        finally:
            server.stop()
            thread.join(60)


class ThreadedServer(Server):
    """A server that stops at once, without waiting for open connections, to keep tests fast."""

    def __init__(self, settings: Settings) -> None:
        self.listening = threading.Event()
        self.app = create_app(settings)
        super().__init__(self.app, self.on_start)

    def on_start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.stopping = asyncio.Event()
        self.listening.set()

    def call(self, method: str, path: str, key: str, body: Any = None) -> tuple[int, bytes]:
        """The status and the content of the response to a request that the application gets without HTTP.

        Raises ConnectionError if a fault closes the connection.
        """
        url = urlsplit(path)
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": unquote(url.path),
            "raw_path": url.path.encode(),
            "query_string": url.query.encode(),
            "headers": [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 0),
        }
        received = iter([{"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}])
        sent: list[Any] = []

        async def receive() -> Any:
            return next(received, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run_coroutine_threadsafe(self.app(scope, receive, send), self.loop).result(60)
        if not sent:
            raise ConnectionError("The sandbox has not responded.")
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)

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
