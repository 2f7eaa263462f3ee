# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Error responses in the shape of the public service: `message`, `code` and `request_id`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from fastapi.responses import JSONResponse
from starlette.types import Scope

from .response_models import ErrorResponse


def error_response(scope: Scope, status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    try:
        code = HTTPStatus(status).name
    except ValueError:
        code = ""
    body = ErrorResponse(message=message, code=code, request_id=scope["state"]["request_id"])
    return JSONResponse(body.model_dump(), status, headers=headers)
