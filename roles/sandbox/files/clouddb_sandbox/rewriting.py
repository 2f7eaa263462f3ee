# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of request and response bodies, for faults."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Omission = Literal["absent", "null", "empty"]


async def process(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
    """Process the request without sending the response. Returns the response's start message and complete body."""
    messages: list[Message] = []

    async def collect(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, collect)
    return messages[0], b"".join(message.get("body", b"") for message in messages[1:])


async def read_body(receive: Receive, limit: float = math.inf) -> bytes:
    """Return the body of the request, or a part of it that is longer than the limit."""
    body = b""
    while len(body) <= limit and (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return body


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` whose request has this body."""
    messages: list[Message] = [{"type": "http.request", "body": body}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def rewrite(app: ASGIApp, change: Callable[[Any], object], status: int | None = None) -> ASGIApp:
    """Return `app` with other successful responses: `change` changes the body, `status` replaces the status."""

    async def rewritten(scope: Scope, receive: Receive, send: Send) -> None:
        start, body = await process(app, scope, receive)
        if start["status"] in (200, 201):
            content = json.loads(body)
            change(content)
            await JSONResponse(content, status or start["status"])(scope, receive, send)
        else:
            await send(start)
            await send({"type": "http.response.body", "body": body})

    return rewritten


def rewrite_shape(app: ASGIApp, values: Mapping[str, Any], omitted: Sequence[str], empty: bool) -> ASGIApp:
    """Return `app` with these values, and without the omitted ones, in successful responses; or without a body."""

    def change(content: Any) -> None:
        for path, value in values.items():
            for holder, name in places(content, path.split(".")):
                holder[name] = value
        for path in omitted:
            for holder, name in places(content, path.split(".")):
                holder.pop(name, None)

    async def without_body(scope: Scope, receive: Receive, send: Send) -> None:
        start, body = await process(app, scope, receive)
        is_success = start["status"] in (200, 201)
        await Response(b"" if is_success else body, start["status"])(scope, receive, send)

    return without_body if empty else rewrite(app, change)


def places(content: Any, path: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects that the path leads to, with its last name."""
    name, rest = path[0], path[1:]
    if not rest:
        if isinstance(content, dict):
            yield content, name
    elif name == "*":
        for child in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
            yield from places(child, rest)
    elif isinstance(content, dict) and name in content:
        yield from places(content[name], rest)


def omit_operations(content: Any, omission: Omission) -> None:
    """Omit the `operations` of a response, if it has any."""
    if "operations" in content:
        content["operations"] = None if omission == "null" else []
        if omission == "absent":
            del content["operations"]


def replace_name(content: Any, replace: Callable[[str], str]) -> str | None:
    """Replace the name of the resource in a body: a key's, or that in a wrapper such as `branch`. Returns the old one."""
    if isinstance(content, dict):
        for holder in (content, *(value for value in content.values() if isinstance(value, dict))):
            for field in ("key_name", "name"):
                name = holder.get(field)
                if isinstance(name, str):
                    holder[field] = replace(name)
                    return name
    return None
