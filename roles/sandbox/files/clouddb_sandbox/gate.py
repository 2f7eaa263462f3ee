# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate that every request passes: request id, bearer key, rate limit, faults, request log, Date header."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
import uuid
from email.utils import formatdate
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import answers, keys, platform_activity
from .clock import SECOND
from .faults import Deciding, DelayFault, PageLimitFault, UnavailableProjectsFault
from .sandbox import BASE_PATH, CONTROL_PATH, Sandbox
from .spoil import spoil

REQUEST_ID = re.compile(r"[\x21-\x7e]{1,200}")

log = logging.getLogger("clouddb_sandbox")


class Gate:
    """ASGI middleware around the routes: without a good key nothing behind it is reached, whatever the path."""

    def __init__(self, app: ASGIApp, sandbox: Sandbox) -> None:
        self.app = app
        self.sandbox = sandbox

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        request_headers = Headers(scope=scope)
        request_id = request_headers.get("x-request-id", "")
        if not REQUEST_ID.fullmatch(request_id):
            request_id = str(uuid.uuid4())
        scope["state"] = {**scope.get("state", {}), "request_id": request_id, "page_limit": None, "unavailable": []}
        entry: dict[str, Any] = {
            "method": scope["method"],
            "path": scope["path"],
            "query": scope["query_string"].decode("latin-1"),
            "status": None,
            "request_id": request_id,
            "user_agent": request_headers.get("user-agent", ""),
            "seconds": None,
        }
        if not below(CONTROL_PATH, scope["path"]):
            self.sandbox.requests.append(entry)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
                entry["seconds"] = round(time.perf_counter() - started, 6)
                headers = MutableHeaders(raw=message["headers"])
                headers["Date"] = formatdate(self.sandbox.store.clock.now() // SECOND, usegmt=True)
                headers["X-Request-ID"] = request_id
            await send(message)

        try:
            await self.answer(scope, receive, send_with_headers, request_headers)
        except Exception:
            if entry["status"] is not None:
                raise
            log.exception("%s %s failed", scope["method"], scope["path"])
            response = answers.error(scope, 500, "the sandbox itself failed; its log says how")
            await response(scope, receive, send_with_headers)

    async def answer(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        if not await run_in_threadpool(self.admit, headers.get("authorization", ""), scope["client"][0]):
            response = answers.error(
                scope, 401, "the API key is missing, invalid or revoked", {"WWW-Authenticate": "Bearer"}
            )
            await response(scope, receive, send)
            return
        if below(BASE_PATH, scope["path"]):
            if seconds := self.sandbox.limiter.take():
                after = {"Retry-After": str(math.ceil(seconds))}
                response = answers.error(scope, 429, "the account has sent too many requests", after)
                await response(scope, receive, send)
                return
            for fault in self.sandbox.faults.draw(scope["method"], scope["path"].removeprefix(BASE_PATH)):
                match fault:
                    case DelayFault():
                        receive = await read_first(receive)
                        await asyncio.sleep(fault.seconds)
                    case PageLimitFault():
                        scope["state"]["page_limit"] = fault.items
                    case UnavailableProjectsFault():
                        scope["state"]["unavailable"] = fault.ids
                    case Deciding():
                        await spoil(fault, self.app, scope, receive, send)
                        return
        await self.app(scope, receive, send)

    def admit(self, authorization: str, address: str) -> bool:
        """Check the bearer key (api.md, "Authentication"); with a good one, the platform catches up with the clock."""
        scheme, _space, secret = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return False
        with self.sandbox.store.transaction() as tx:
            if not keys.use(tx, secret.strip(), address):
                return False
            platform_activity.catch_up(tx)
            return True


async def read_first(receive: Receive) -> Receive:
    """Read the request now, so that it can be carried out later even if the client has gone by then."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())

    async def replay() -> Message:
        return messages.pop(0) if messages else await receive()

    return replay


def below(base: str, path: str) -> bool:
    return path == base or path.startswith(base + "/")
