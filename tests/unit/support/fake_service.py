# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of a JSON API, for services that no package contains."""

from __future__ import annotations

from typing import Any

from scripted_service import Reply, Request, ScriptedService, reply

TOKEN = "token-for-the-fake"


class FakeService(ScriptedService):
    """A service that accepts TOKEN, and sends C(headers). While C(rejects_writes), it fails all other requests than GET."""

    headers: dict[str, str] = {}
    rejects_writes = False

    @property
    def url(self) -> str:
        return self.base_url.removesuffix("/api/v2")

    def writes(self) -> int:
        """The number of requests that may have changed something."""
        return sum(request.method != "GET" for request in self.requests)

    def result(self, request: Request) -> tuple[int, Any]:
        """The status and the JSON body of the response. Raises KeyError for what the service does not have."""
        raise NotImplementedError

    def reply_to(self, request: Request) -> Reply:
        if request.headers["Authorization"] != f"Bearer {TOKEN}":
            status, body = 401, {"message": "The token is missing or invalid."}
        elif self.rejects_writes and request.method != "GET":
            status, body = 500, {"message": "The disk is full."}
        else:
            try:
                status, body = self.result(request)
            except KeyError as error:
                status, body = 404, {"message": f"{request.method} {request.path}: {error}"}
        content = b"" if body is None else body
        return reply(content, status, Content_Type="application/json", **self.headers)
