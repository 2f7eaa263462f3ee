# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real sandbox in this process, and a client of its API and control endpoints."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock
from urllib.parse import unquote, urlencode, urlsplit

import anyio.to_thread

sys.path.insert(0, str(Path(__file__).parents[3] / "roles" / "sandbox" / "files"))

from clouddb_sandbox.app import create_app, open_store
from clouddb_sandbox.paths import BASE_PATH, CONTROL_PATH
from clouddb_sandbox.seed_models import validate_seed
from clouddb_sandbox.server import Server, base_url, bind_socket
from clouddb_sandbox.settings import Settings
from clouddb_sandbox.state import SandboxState

# In the main thread, because imports in the thread of a sandbox could wait for those of a test.
for name in ("lifespan.on", "loops.auto", "protocols.http.auto", "protocols.websockets.auto"):
    importlib.import_module(f"uvicorn.{name}")


async def run_here(function: Callable[..., Any], *arguments: Any, **_options: Any) -> Any:
    return function(*arguments)


# The endpoints are quick, and threads of their own would take a fifth of the time of a test.
anyio.to_thread.run_sync = run_here  # type: ignore[assignment]

API_KEY = "first-key-of-the-account-0123456789abcdef0123456789abcdef012345"
Headers = Iterable[tuple[bytes, bytes]]


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: list[tuple[bytes, bytes]]
    content: bytes


class Application:
    """The application of a sandbox. C(run) runs a coroutine of it."""

    def __init__(self, app: Any, run: Callable[[Coroutine[Any, Any, None]], object]):
        self.app = app
        self._run = run

    def call(self, method: str, target: str, key: str, body: Any = None, **headers: str) -> Answer:
        """As C(send), with this key and JSON body."""
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json", **headers}
        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        return self.send(method, target, fields, b"" if body is None else json.dumps(body).encode())

    def send(self, method: str, target: str, headers: Headers, body: bytes) -> Answer:
        """The response to a request. Raises ConnectionError if a fault closes the connection."""
        url = urlsplit(target)
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": unquote(url.path),
            "raw_path": url.path.encode(),
            "query_string": url.query.encode(),
            "headers": headers,
            "client": ("127.0.0.1", 0),
        }
        received = iter([{"type": "http.request", "body": body}])
        sent: list[Any] = []

        async def receive() -> Any:
            return next(received, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        self._run(self.app(scope, receive, send))
        if not sent:
            raise ConnectionError("The sandbox has not responded.")
        return Answer(sent[0]["status"], sent[0]["headers"], b"".join(message.get("body", b"") for message in sent))


class Sandbox:
    """Client of the API and the control endpoints of a sandbox, without HTTP and without the code under test."""

    def __init__(self, base_url: str, application: Application):
        self.base_url = base_url
        self.api_key = API_KEY
        self.application = application
        self.state: SandboxState = application.app.state.sandbox

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return self._send(method, BASE_PATH + path, body)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        return self._send(method, CONTROL_PATH + path, body)

    def fault(self, kind: str, **rule: Any) -> None:
        self.control("POST", "/faults", {"kind": kind, **rule})

    def plan(self, *timeline: tuple[float, str], **plan: Any) -> None:
        self.control("POST", "/operation_plans", {"timeline": list(timeline), **plan})

    def advance(self, seconds: float) -> None:
        self.state.store.set_clock(None, seconds)

    def requests(self) -> list[dict[str, Any]]:
        """The API requests so far, as the sandbox has logged them."""
        return list(self.state.request_log.copy())

    def sent(self) -> list[str]:
        """The requests of the code under test, each as C(METHOD path), the path without the base path."""
        ours = (entry for entry in self.requests() if entry["user_agent"].startswith("clouddb.control/"))
        return [f"{entry['method']} {entry['path'].removeprefix('/api/v2')}" for entry in ours]

    def accepts(self, secret: str) -> bool:
        """Whether the service accepts this secret as a bearer key."""
        return self.application.call("GET", f"{BASE_PATH}/projects", secret).status == 200

    def keys(self, name: str) -> list[dict[str, Any]]:
        """The active keys with this name."""
        return [key for key in self.api("GET", "/api_keys") if key["name"] == name]

    def _send(self, method: str, path: str, body: Any) -> Any:
        answer = self.application.call(method, path, API_KEY, body)
        assert 200 <= answer.status < 300, answer
        return json.loads(answer.content)


@contextmanager
def running_sandbox(folder: Path, **seed: Any) -> Iterator[Sandbox]:
    """Run a sandbox whose clock is stopped until it is advanced, with an account created from C(seed)."""
    settings = Settings(folder / "sandbox.db", API_KEY, seed, speed=0)
    with closing(sqlite3.connect(settings.database)) as database:
        new_account(json.dumps(seed)).backup(database)
    with run_in_thread(settings) as (base_url, server):
        yield Sandbox(base_url, server.application)


@functools.cache
def new_account(seed: str) -> sqlite3.Connection:
    """The database of an account with this seed, in memory. Its creation takes longer than most tests, so they copy it."""
    settings = Settings(Path(":memory:"), API_KEY, json.loads(seed), speed=0)
    database: sqlite3.Connection = open_store(settings, validate_seed(settings.seed))._db
    return database


def run_to_end(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits, without an event loop, in half of the time."""
    with suppress(StopIteration):
        coroutine.send(None)
        raise RuntimeError("The sandbox waits for something. Only one with a server can do that.")


@contextmanager
def application_in_memory(**seed: Any) -> Iterator[Application]:
    """A sandbox without a server, with an account in memory that is created from C(seed)."""
    account = new_account(json.dumps(seed))

    def copy(_path: Path, **options: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(":memory:", **options)
        account.backup(database)
        return database

    connect = sqlite3.connect
    with mock.patch.object(sqlite3, "connect", copy):
        app = create_app(Settings(Path(":memory:"), API_KEY, seed, speed=0))
    app.state.server = SimpleNamespace(server_state=SimpleNamespace(connections=()))
    try:
        yield Application(app, run_to_end)
    finally:
        app.state.sandbox.store.close()


@contextmanager
def sandbox_in_process(**seed: Any) -> Iterator[Sandbox]:
    """As C(running_sandbox), but the code under test in this process calls it without HTTP, in a third of the time."""
    # Other programs use this file without the collection.
    import requests

    from ansible_collections.clouddb.control.plugins.module_utils._http import attempt, transport

    own_base_url = "http://127.0.0.1:1" + BASE_PATH

    def run_attempt(work: Any, seconds: float) -> tuple[int, Any, bytes]:
        """As the client's, but without a thread and without HTTP if the request is for this sandbox. Raises AttemptError."""
        _session, connection, request, _seconds = work.args
        if connection.base_url != own_base_url:
            response: tuple[int, Any, bytes] = attempt.run_attempt(work, seconds)
            return response
        if seconds <= 0:
            raise attempt.AttemptError(None, was_sent=False)
        query = {name: value for name, value in (request.query or {}).items() if value is not None}
        target = f"{BASE_PATH}{request.path}?{urlencode(query, doseq=True)}"
        headers = {"user-agent": "clouddb.control/unit", "x-request-id": request.request_id}
        try:
            answer = application.call(request.method, target, connection.api_key, request.body, **headers)
        except ConnectionError as error:
            raise attempt.AttemptError(requests.ConnectionError(error), was_sent=True) from None
        received = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
        return answer.status, requests.structures.CaseInsensitiveDict(received), answer.content

    with application_in_memory(**seed) as application, mock.patch.object(transport, "run_attempt", run_attempt):
        yield Sandbox(own_base_url, application)


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
        app = create_app(settings)
        self.application = Application(app, self.run_coroutine)
        super().__init__(app, self.on_start)

    def on_start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.stopping = asyncio.Event()
        self.listening.set()

    def run_coroutine(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run it in the thread of the server."""
        asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

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
