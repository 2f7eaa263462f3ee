# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real sandbox in this process, and a client of its API and control endpoints."""

from __future__ import annotations

import asyncio
import importlib
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import requests

sys.path.insert(0, str(Path(__file__).parents[3] / "roles" / "sandbox" / "files"))

from clouddb_sandbox.app import create_app
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
    """Client of a running sandbox, independent of the code under test: C(api) for the API, C(control) for control endpoints."""

    def __init__(self, base_url: str):
        self.base_url = base_url
        self.api_key = API_KEY
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {API_KEY}"

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return self._send(method, self.base_url + path, body)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        return self._send(method, self.base_url.replace("/api/v2", "/_sandbox") + path, body)

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
        headers = {"Authorization": f"Bearer {secret}"}
        return self._session.get(f"{self.base_url}/projects", headers=headers, timeout=60).status_code == 200

    def keys(self, name: str) -> list[dict[str, Any]]:
        """The active keys with this name."""
        return [key for key in self.api("GET", "/api_keys") if key["name"] == name]

    def _send(self, method: str, url: str, body: Any) -> Any:
        response = self._session.request(method, url, json=body, timeout=60)
        response.raise_for_status()
        return response.json()


@contextmanager
def running_sandbox(folder: Path, **seed: Any) -> Iterator[Sandbox]:
    """Run a sandbox whose clock is stopped until it is advanced, with an account created from C(seed)."""
    with run_in_thread(Settings(folder / "sandbox.db", API_KEY, seed, speed=0)) as base_url:
        yield Sandbox(base_url)


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
