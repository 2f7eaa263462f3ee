# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ASGI middleware that every request passes, outermost first: request log, authentication, rate limit.

The fault injection in fault_injection.py comes after them.
"""

from __future__ import annotations

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

from . import keys, platform_activity
from .clock import SECOND
from .keys import Scope as KeyScope
from .paths import BASE_PATH, CONTROL_PATH, is_below
from .responses import error_response
from .rewriting import read_body, replay_body
from .rules import ACCOUNT_PATHS, NOT_FOR_ORGANIZATIONS, NOT_ITS_PROJECT, OUTSIDE_THE_PROJECT
from .state import SandboxState

# Far above any body of the API.
MAX_BODY = 1_048_576
PROJECT_PATH = re.compile(rf"{BASE_PATH}/projects/([^/]+)")
REQUEST_ID = re.compile(r"[\x21-\x7e]{1,200}")

log = logging.getLogger("clouddb_sandbox")


class Middleware:
    """Base class: processes HTTP requests with handle(). The application gets everything else as it is."""

    def __init__(self, app: ASGIApp, sandbox: SandboxState) -> None:
        self.app = app
        self.sandbox = sandbox

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.handle if scope["type"] == "http" else self.app)(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError


class RequestLogMiddleware(Middleware):
    """Logs API requests, sets X-Request-ID and Date, and responds 500 to unhandled exceptions."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request_headers = Headers(scope=scope)
        request_id = request_headers.get("x-request-id", "")
        if not REQUEST_ID.fullmatch(request_id):
            request_id = str(uuid.uuid4())
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        entry: dict[str, Any] = {
            "method": scope["method"],
            "path": scope["path"],
            "query": scope["query_string"].decode("latin-1"),
            "status": None,
            "request_id": request_id,
            "user_agent": request_headers.get("user-agent", ""),
            "seconds": None,
        }
        if not is_below(CONTROL_PATH, scope["path"]):
            self.sandbox.request_log.append(entry)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
                entry["seconds"] = round(time.perf_counter() - started, 6)
                headers = MutableHeaders(raw=message["headers"])
                headers["Date"] = formatdate(self.sandbox.store.clock.now() // SECOND, usegmt=True)
                headers["X-Request-ID"] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            if entry["status"] is not None:
                raise
            log.exception("%s %s failed", scope["method"], scope["path"])
            response = error_response(scope, 500, "internal error of the sandbox; see its log")
            await response(scope, receive, send_with_headers)


class AuthenticationMiddleware(Middleware):
    """Responds 401 unless the request has a valid bearer key, on every path (api.md, "Authentication").

    Responds 404 where the key's scope does not reach. Sets `key` of the state.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        app, authorization = self.app, Headers(scope=scope).get("authorization", "")
        key = await run_in_threadpool(self.authenticate, authorization, scope["client"][0], scope["path"])
        if key is None:
            message = "the API key is missing, invalid or revoked"
            app = error_response(scope, 401, message, {"WWW-Authenticate": "Bearer"})
        elif problem := refusal(key, scope["method"], scope["path"]):
            app = error_response(scope, 404, problem)
        scope["state"]["key"] = key
        await app(scope, receive, send)

    def authenticate(self, authorization: str, address: str, path: str) -> KeyScope | None:
        """Return the scope of the header's key if that is valid, and record what the platform has done in the path's project."""
        scheme, _space, secret = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        with self.sandbox.store.transaction() as tx:
            key = keys.authenticate(tx, secret.strip(), address)
            if key:
                tx.complete_deletions()
                if project := PROJECT_PATH.match(path):
                    platform_activity.catch_up(tx, project[1])
            return key


def refusal(key: KeyScope, method: str, path: str) -> str | None:
    """Return why a key may not be used for this request: it is limited to a project, or belongs to an organization."""
    if key.project_id is not None:
        project = f"{BASE_PATH}/projects/{key.project_id}"
        if not is_below(project, path):
            return f'{OUTSIDE_THE_PROJECT}; subject_project_id:"{key.project_id}"'
        if (method, path) == ("DELETE", project):
            return NOT_ITS_PROJECT
    if key.org_id is not None and any(is_below(BASE_PATH + account, path) for account in ACCOUNT_PATHS):
        return NOT_FOR_ORGANIZATIONS
    return None


class BodyLimitMiddleware(Middleware):
    """Responds 413 to a request whose body is too large, without reading more of it than that."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        app, length = self.app, Headers(scope=scope).get("content-length")
        if length is None:
            body = await read_body(receive, MAX_BODY)
            receive, length = replay_body(body, receive), str(len(body))
        if not length.isdecimal() or int(length) > MAX_BODY:
            app = error_response(scope, 413, f"the body has more than {MAX_BODY} bytes", {"Connection": "close"})
        await app(scope, receive, send)


class EncodedPathMiddleware(Middleware):
    """Routes requests by their path as it was sent; see EncodedSegment."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, "path": scope["raw_path"].decode("ascii")}, receive, send)


class RateLimitMiddleware(Middleware):
    """Responds 429 to API requests above the account's rate limit."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if is_below(BASE_PATH, scope["path"]) and (seconds := self.sandbox.rate_limiter.consume()):
            message = "the account has sent too many requests"
            app = error_response(scope, 429, message, {"Retry-After": str(math.ceil(seconds))})
        await app(scope, receive, send)
