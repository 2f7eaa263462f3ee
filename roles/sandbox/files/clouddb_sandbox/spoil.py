# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers that a fault decides."""

from __future__ import annotations

import asyncio

from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import answers
from .faults import (
    Deciding,
    HtmlFault,
    LostAnswerFault,
    MalformedFault,
    RedirectFault,
    ResetFault,
    StallFault,
    StatusFault,
    TruncateFault,
)

PAGE = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>\n"


async def spoil(fault: Deciding, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    match fault:
        case StatusFault():
            await answer_to(fault, scope)(scope, receive, send)
        case HtmlFault():
            await HTMLResponse(PAGE)(scope, receive, send)
        case RedirectFault():
            await Response(status_code=302, headers={"Location": fault.location})(scope, receive, send)
        case ResetFault():
            await cut(scope, receive)
        case StallFault():
            try:
                await asyncio.wait_for(disconnected(receive), fault.seconds)
            except TimeoutError:  # not yet the built-in one in Python 3.10
                await cut(scope, receive)
        case LostAnswerFault():
            await answer_of(app, scope, receive)
            await cut(scope, receive)
        case TruncateFault():
            start, body = await answer_of(app, scope, receive)
            await send(start)
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            await cut(scope, receive, after_sending=True)
        case MalformedFault():
            start, body = await answer_of(app, scope, receive)
            headers = {"Content-Type": "application/json"}
            await Response(body[: len(body) // 2], start["status"], headers)(scope, receive, send)


def answer_to(fault: StatusFault, scope: Scope) -> Response:
    response: Response
    if fault.status in (204, 304):
        response = Response(status_code=fault.status)
    elif fault.body is None:
        response = answers.error(scope, fault.status, f"the sandbox was told to answer {fault.status}")
    elif isinstance(fault.body, str):
        response = PlainTextResponse(fault.body, fault.status)
    else:
        response = JSONResponse(fault.body, fault.status)
    if fault.retry_after is not None:
        response.headers["Retry-After"] = str(fault.retry_after)
    return response


async def answer_of(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
    """Carry the request out and keep the answer back: its first message and its whole body."""
    messages: list[Message] = []

    async def keep(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, keep)
    return messages[0], b"".join(message.get("body", b"") for message in messages[1:])


async def cut(scope: Scope, receive: Receive, after_sending: bool = False) -> None:
    """Cut this request's connection; ASGI has no word for it, so ask the server for its transport."""
    connections = scope["app"].state.server.server_state.connections
    for connection in connections:
        if connection.client == scope["client"]:
            if after_sending:
                connection.transport.close()
            else:
                connection.transport.abort()
    await disconnected(receive)


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
