# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The FastAPI application: middleware, endpoints and error handlers."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from . import keys
from .fault_injection import FaultInjectionMiddleware
from .faults import RequireOrgIdFault
from .limits import Limits
from .middleware import (
    AuthenticationMiddleware,
    BodyLimitMiddleware,
    EncodedPathMiddleware,
    RateLimitMiddleware,
    RequestLogMiddleware,
)
from .responses import error_response
from .routes import (
    account,
    api_keys,
    branches,
    computes,
    connections,
    control,
    databases,
    operations,
    permissions,
    projects,
    roles,
    snapshots,
)
from .seed_loader import load_seed
from .seed_models import Seed, validate_seed
from .settings import Settings
from .state import SandboxState
from .store import Store, create_tables

FIRST_KEY_NAME = "sandbox"
# Outermost first.
MIDDLEWARE = (
    RequestLogMiddleware,
    AuthenticationMiddleware,
    RateLimitMiddleware,
    BodyLimitMiddleware,
    FaultInjectionMiddleware,
    EncodedPathMiddleware,
)
# include_router() would build each route again for each application, which takes longer than a test.
RESOURCES = (
    account,
    api_keys,
    projects,
    branches,
    computes,
    databases,
    roles,
    connections,
    operations,
    permissions,
    snapshots,
    control,
)
ROUTES = [route for resource in RESOURCES for route in resource.router.routes]


@functools.cache
def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document, made to match the behavior: a bearer key is required, invalid requests get 400."""
    document = get_openapi(title="clouddb sandbox", version="2", routes=ROUTES)
    for item in document["paths"].values():
        for operation in item.values():
            validation_error = operation["responses"].get("422", {}).get("content", {}).get("application/json", {})
            if validation_error.get("schema") == {"$ref": "#/components/schemas/HTTPValidationError"}:
                del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
    document["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"bearer": []}]
    return document


def create_app(settings: Settings) -> FastAPI:
    """Create the application. Creates the account in a new database. Raises ValueError if the seed is invalid."""
    seed = validate_seed(settings.seed or {})
    sandbox = SandboxState(open_store(settings, seed))
    if seed.require_org_id:
        sandbox.faults.add(RequireOrgIdFault(kind="require_org_id"))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        sandbox.store.close()

    # No documentation pages: they load scripts from the internet, and the sandbox must work without network access.
    app = FastAPI(
        routes=ROUTES,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.openapi = openapi_document  # type: ignore[method-assign]
    app.state.sandbox = sandbox
    for middleware in reversed(MIDDLEWARE):
        app.add_middleware(middleware, sandbox=sandbox)
    app.add_exception_handler(HTTPException, handle_http_exception)
    app.add_exception_handler(RequestValidationError, handle_validation_error)
    return app


def open_store(settings: Settings, seed: Seed) -> Store:
    store = Store(settings.database, settings.speed, settings.lock)
    store.limits = Limits.model_validate(settings.limits).model_dump()
    with store.transaction() as tx:
        if store.is_new:
            create_tables(tx, settings.seed_checksum)
        keys.create_if_missing(tx, FIRST_KEY_NAME, settings.api_key)
        if store.is_new:
            load_seed(tx, seed)
    store.set_clock(settings.speed)
    return store


async def handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 204:
        return Response(status_code=204)
    if error.status_code == 405:
        allowed = ", ".join(allowed_methods(request.app, request.scope["path"]))
        message = f"method {request.method} is not allowed; use one of {allowed}"
        return error_response(request.scope, 405, message, {"Allow": allowed})
    if error.status_code == 404 and "endpoint" not in request.scope:
        return error_response(request.scope, 404, f"path {request.url.path} not found")
    code = getattr(error, "code", "")
    return error_response(request.scope, error.status_code, str(error.detail), error.headers, code)


async def handle_validation_error(request: Request, error: Exception) -> JSONResponse:
    """Respond 400 with the location and the message of every error."""
    assert isinstance(error, RequestValidationError)
    messages = [f"{'.'.join(map(str, details['loc']))}: {details['msg']}" for details in error.errors()]
    if isinstance(error.body, bytes):  # not parsed
        messages.append("send JSON with Content-Type: application/json")
    return error_response(request.scope, 400, "; ".join(messages))


def allowed_methods(app: FastAPI, path: str) -> list[str]:
    """Return all methods of a path. The router itself would report only those of the first matching route."""
    methods = {"GET"} if path == app.openapi_url else set()
    for template, item in openapi_document()["paths"].items():
        if compile_path(template)[0].match(path):
            methods |= {method.upper() for method in item}
    return sorted(methods)
