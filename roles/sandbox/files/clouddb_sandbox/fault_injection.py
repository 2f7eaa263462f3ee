# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ASGI middleware that applies the active faults to API requests."""

from __future__ import annotations

import asyncio

from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .faults import (
    DelayFault,
    HtmlFault,
    LostResponseFault,
    MalformedFault,
    PageLimitFault,
    RedirectFault,
    ResetFault,
    ResponseFault,
    StallFault,
    StatusFault,
    TruncateFault,
    UnavailableProjectsFault,
)
from .paths import BASE_PATH, is_below
from .responses import error_response
from .state import SandboxState

HTML_PAGE = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>\n"


class FaultInjectionMiddleware:
    """Applies the faults that match an API request. Sets `page_limit` and `unavailable_ids` of the request's state."""

    def __init__(self, app: ASGIApp, sandbox: SandboxState) -> None:
        self.app = app
        self.sandbox = sandbox

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_below(BASE_PATH, scope["path"]):
            state = scope["state"]
            state.update(page_limit=None, unavailable_ids=[])
            for fault in self.sandbox.faults.consume(scope["method"], scope["path"].removeprefix(BASE_PATH)):
                match fault:
                    case DelayFault():
                        receive = await buffer_request(receive)
                        await asyncio.sleep(fault.seconds)
                    case PageLimitFault():
                        state["page_limit"] = fault.items
                    case UnavailableProjectsFault():
                        state["unavailable_ids"] = fault.ids
                    case ResponseFault():
                        await inject(fault, self.app, scope, receive, send)
                        return
        await self.app(scope, receive, send)


async def inject(fault: ResponseFault, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Respond as the fault says. Only some faults have `app` process the request."""
    match fault:
        case StatusFault():
            await status_response(fault, scope)(scope, receive, send)
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


async def process(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
    """Process the request without sending the response. Returns the response's start message and complete body."""
    messages: list[Message] = []

    async def collect(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, collect)
    return messages[0], b"".join(message.get("body", b"") for message in messages[1:])


async def buffer_request(receive: Receive) -> Receive:
    """Read the request now, so that it is processed after a delay even if the client has disconnected."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())

    async def replay() -> Message:
        return messages.pop(0) if messages else await receive()

    return replay


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
