# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ASGI middleware that applies the active faults to API requests."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote

from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from .clock import SECOND
from .faults import (
    DelayFault,
    HiddenSourceFault,
    HtmlFault,
    IgnoredChangeFault,
    Lag,
    LateOperationsFault,
    LingeringDeletionFault,
    ListLagFault,
    LostResponseFault,
    MalformedFault,
    MissingOperationsFault,
    NormalizedNameFault,
    PageLimitFault,
    RecordedFault,
    RedirectFault,
    RequireOrgIdFault,
    ResetFault,
    ResponseFault,
    RewriteFault,
    StallFault,
    StatusFault,
    TruncateFault,
    UnavailableProjectsFault,
)
from .middleware import Middleware
from .paths import BASE_PATH, is_below
from .responses import error_response
from .rewriting import omit_operations, process, read_body, replace_name, replay_body, rewrite, rewrite_shape
from .rules import ANSWERS, ORG_ID_REQUIRED
from .store import Lingering

HTML_PAGE = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>\n"


class FaultInjectionMiddleware(Middleware):
    """Applies the faults that match an API request. Sets `page_limit`, `unavailable_ids` and `sandbox` of its state."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_below(BASE_PATH, scope["path"]):
            await self.app(scope, receive, send)
            return
        state, method = scope["state"], scope["method"]
        path, now = scope["path"].removeprefix(BASE_PATH), self.sandbox.store.clock.now()
        faults = self.sandbox.faults
        state.update(page_limit=None, unavailable_ids=[], sandbox=self.sandbox)
        if method == "GET" and (old := faults.old_state(path, now)):
            state["sandbox"] = replace(self.sandbox, store=old)
        # Complete, so that the request is processed even if the client disconnects meanwhile.
        receive = replay_body(body := await read_body(receive), receive)
        app = self.refusal(scope, path, body, now) or self.app
        for fault in faults.consume(method, path):
            match fault:
                case DelayFault():
                    await asyncio.sleep(fault.seconds)
                case PageLimitFault():
                    state["page_limit"] = fault.items
                case UnavailableProjectsFault():
                    state["unavailable_ids"] = fault.ids
                case RequireOrgIdFault():
                    # A key of the organization implies it.
                    if not state["key"].org_id and "org_id" not in parse_qs(scope["query_string"].decode("latin-1")):
                        app = error_response(scope, 400, ORG_ID_REQUIRED)
                case ListLagFault() | LateOperationsFault():
                    old = await run_in_threadpool(self.sandbox.store.snapshot)
                    faults.lags.append(Lag(now + int(fault.seconds * SECOND), lagging_paths(fault, scope), old))
                case MissingOperationsFault():
                    app = rewrite(app, partial(omit_operations, omission=fault.operations))
                case RewriteFault():
                    app = rewrite_shape(app, fault.set, fault.omit, fault.empty)
                case HiddenSourceFault():
                    faults.hidden[source_path(path, body)] = now + int(fault.seconds * SECOND)
                case NormalizedNameFault():
                    app = with_normalized_name(app, fault)
                case IgnoredChangeFault():
                    app = without_change(app)
                case LingeringDeletionFault():
                    lingering = Lingering(fault.seconds, fault.operations == "running")
                    state["sandbox"] = replace(self.sandbox, store=self.sandbox.store.with_lingering(lingering))
                    app = rewrite(app, partial(self.accept_deletion, fault, path), fault.status)
                case ResponseFault():
                    await inject(fault, app, scope, receive, send)
                    return
        await app(scope, receive, send)

    def refusal(self, scope: Scope, path: str, body: bytes, now: int) -> ASGIApp | None:
        """Return the response to a request for a resource that lingers, or that is or copies a hidden one."""
        lingers_until, again = self.sandbox.faults.lingering.get(path, (0, 0))
        if scope["method"] == "DELETE" and now < lingers_until:
            return error_response(scope, again, "the resource is being deleted")
        paths = (path, source_path(path, body))
        hidden = [branch for branch, until in self.sandbox.faults.hidden.items() if now < until]
        if any(is_below(branch, each) for branch in hidden for each in paths):
            return error_response(scope, 404, "branch not found")
        return None

    def accept_deletion(self, fault: LingeringDeletionFault, path: str, content: Any) -> None:
        """Remember a deletion that lingers, and change the response to it."""
        until = self.sandbox.store.clock.now() + int(fault.seconds * SECOND)
        self.sandbox.faults.lingering[path] = (until, fault.again)
        if fault.operations != "running":
            omit_operations(content, fault.operations)


def lagging_paths(fault: ListLagFault | LateOperationsFault, scope: Scope) -> re.Pattern[str]:
    """Return the path of the list that the request changes, or the paths of operations of the project that it changes."""
    segments = [unquote(segment) for segment in scope["raw_path"].decode("ascii").removeprefix(BASE_PATH).split("/")]
    if isinstance(fault, ListLagFault):
        return re.compile(re.escape("/".join(segments if scope["method"] == "POST" else segments[:-1])))
    project = re.escape(segments[2]) if len(segments) > 2 else "[^/]+"
    return re.compile(f"/projects/{project}/operations(/.*)?")


def with_normalized_name(app: ASGIApp, fault: NormalizedNameFault) -> ASGIApp:
    async def normalized(scope: Scope, receive: Receive, send: Send) -> None:
        body, sent = await read_body(receive), None
        with suppress(ValueError):
            content = json.loads(body)
            sent = replace_name(content, fault.normalize)
            body = json.dumps(content).encode()
        echo = rewrite(app, lambda content: replace_name(content, lambda name: sent or name))
        await (echo if fault.echo else app)(scope, replay_body(body, receive), send)

    return normalized


def without_change(app: ASGIApp) -> ASGIApp:
    async def get(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "method": "GET"}, receive, send)

    return rewrite(get, lambda content: content.update(operations=[]))


async def inject(fault: ResponseFault, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Respond as the fault says. Only some faults have `app` process the request."""
    match fault:
        case StatusFault():
            await status_response(fault, scope)(scope, receive, send)
        case RecordedFault():
            await recorded_response(fault.answer, scope)(scope, receive, send)
        case HtmlFault():
            await HTMLResponse(HTML_PAGE)(scope, receive, send)
        case RedirectFault():
            await Response(status_code=302, headers={"Location": fault.location})(scope, receive, send)
        case ResetFault():
            await close_connection(scope, receive)
        case StallFault():
            try:
                await asyncio.wait_for(wait_for_disconnect(receive), fault.seconds)
            except asyncio.TimeoutError:  # an alias of TimeoutError only from Python 3.11 on
                await close_connection(scope, receive)
        case LostResponseFault():
            await process(app, scope, receive)
            await close_connection(scope, receive)
        case TruncateFault():
            start, body = await process(app, scope, receive)
            await send(start)
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            await close_connection(scope, receive, flush=True)
        case MalformedFault():
            start, body = await process(app, scope, receive)
            headers = {"Content-Type": "application/json"}
            await Response(body[: len(body) // 2], start["status"], headers)(scope, receive, send)


def source_path(path: str, body: bytes) -> str:
    """The path of the branch that a restore or a creation copies; of none if the body is invalid, which the endpoint refuses."""
    source = ""
    with suppress(ValueError, AttributeError, RecursionError):
        fields = json.loads(body)
        source = fields.get("source_branch_id") or fields.get("branch", {}).get("parent_id")
    return f"{path.partition('/branches')[0]}/branches/{source}"


def recorded_response(name: str, scope: Scope) -> Response:
    answer = ANSWERS[name]
    if answer.message.startswith("<"):
        return HTMLResponse(answer.message, answer.status)
    return error_response(scope, answer.status, answer.message)


def status_response(fault: StatusFault, scope: Scope) -> Response:
    response: Response
    if fault.status in (204, 304):
        response = Response(status_code=fault.status)
    elif fault.body is None:
        response = error_response(scope, fault.status, f"status {fault.status}, injected by a fault of the sandbox")
    elif isinstance(fault.body, str):
        response = PlainTextResponse(fault.body, fault.status)
    else:
        response = JSONResponse(fault.body, fault.status)
    if fault.retry_after is not None:
        response.headers["Retry-After"] = str(fault.retry_after)
    return response


async def close_connection(scope: Scope, receive: Receive, flush: bool = False) -> None:
    """Close this request's connection through the server's transport, because ASGI cannot close connections."""
    connections = scope["app"].state.server.server_state.connections
    for connection in connections:
        if connection.client == scope["client"]:
            if flush:
                connection.transport.close()
            else:
                connection.transport.abort()
    await wait_for_disconnect(receive)


async def wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
