# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The application: the gate, and behind it the endpoints."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from . import answers, keys
from .gate import Gate
from .routes import api_keys, branches, control, operations, projects
from .sandbox import BASE_PATH, Sandbox
from .seed import check_seed, sow
from .settings import Settings
from .store import Store, create_tables

FIRST_KEY = "sandbox"


class SandboxApp(FastAPI):
    """FastAPI, with an OpenAPI document that says what really happens: a bearer key is needed, and bad requests get 400."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema:
            return self.openapi_schema
        document = super().openapi()
        for item in document["paths"].values():
            for operation in item.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        document["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"bearer": []}]
        return document


def create_app(settings: Settings) -> FastAPI:
    seed = check_seed(settings.seed or {})
    store = Store(settings.database, settings.speed)
    with store.transaction() as tx:
        if store.is_new:
            create_tables(tx)
        keys.ensure(tx, FIRST_KEY, settings.api_key)
        if store.is_new:
            sow(tx, seed)
    store.set_clock(settings.speed)
    sandbox = Sandbox(store)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        store.close()

    # No pages for browsers: they would load scripts from elsewhere, and the sandbox never needs the network.
    app = SandboxApp(title="clouddb sandbox", docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan)
    app.state.sandbox = sandbox
    app.add_middleware(Gate, sandbox=sandbox)
    for module in (api_keys, projects, branches, operations):
        app.include_router(module.router, prefix=BASE_PATH)
    app.include_router(control.router)
    app.add_exception_handler(HTTPException, answer_error)
    app.add_exception_handler(RequestValidationError, answer_bad_request)
    return app


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = ", ".join(allowed_methods(request.app, request.scope["path"]))
        message = f"{request.method} is not allowed here; allowed: {allowed}"
        return answers.error(request.scope, 405, message, {"Allow": allowed})
    if error.status_code == 404 and "endpoint" not in request.scope:
        return answers.error(request.scope, 404, f"there is nothing at {request.url.path}")
    return answers.error(request.scope, error.status_code, str(error.detail), error.headers)


async def answer_bad_request(request: Request, error: Exception) -> JSONResponse:
    """400 with every complaint: where, and what is right there."""
    assert isinstance(error, RequestValidationError)
    complaints = [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]
    return answers.error(request.scope, 400, "; ".join(complaints))


def allowed_methods(app: FastAPI, path: str) -> list[str]:
    """Every method that this path takes; the router itself would name only those of the first route that fits."""
    methods = {"GET"} if path == app.openapi_url else set()
    for template, item in app.openapi()["paths"].items():
        if compile_path(template)[0].match(path):
            methods |= {method.upper() for method in item}
    return sorted(methods)
