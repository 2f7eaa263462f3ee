# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Error responses in the shape of the public service: `message`, `code` and `request_id`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.types import Scope

from .response_models import ErrorResponse


class LimitExceeded(HTTPException):
    """A limit of the account, which has a published code, except that of snapshots."""

    def __init__(self, kind: str) -> None:
        super().__init__(422, f"{kind} limit exceeded")
        self.code = "" if kind == "snapshots" else f"{kind.upper().replace(' ', '_')}_LIMIT_EXCEEDED"


def error_response(
    scope: Scope, status: int, message: str, headers: Mapping[str, str] | None = None, code: str = ""
) -> JSONResponse:
    body = ErrorResponse(message=message, code=code, request_id=scope["state"]["request_id"])
    return JSONResponse(body.model_dump(), status, headers=headers)


@contextmanager
def unique_name(parent: str, kind: str, name: str) -> Iterator[None]:
    """Raise a 409 error if the database refuses the name, because the parent has another resource of this kind and name."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise HTTPException(409, f"{parent} has a {kind} named {name} already") from error
