# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mock of the public service on a loopback address: it checks requests by the OpenAPI document and sends its examples."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from document import Document, Operation
from openapi_core import Config, OpenAPI
from openapi_core.contrib.werkzeug import WerkzeugOpenAPIRequest, WerkzeugOpenAPIResponse
from openapi_core.exceptions import OpenAPIError
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

BASE_PATH = "/api/v2"


class Contract:
    """Checks requests and responses by the document, whatever address they were sent to."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.operations = {str(operation): operation for operation in document.operations()}
        content = {**document.content, "servers": [{"url": "/"}]}
        # The service may send fields that the document lacks; a request must not have any.
        self._responses = OpenAPI.from_dict(content)
        strict = Config(spec_validator_cls=None, additional_properties_default_policy="forbid")
        self._requests = OpenAPI.from_dict(content, strict)
        rules = [
            Rule(
                operation.path.replace("{", "<").replace("}", ">"),
                methods=[operation.method],
                endpoint=name,
                merge_slashes=False,
            )
            for name, operation in self.operations.items()
        ]
        self._routes = Map(rules, strict_slashes=True, redirect_defaults=False)

    def find(self, request: Request) -> Operation | None:
        """The operation that a request calls."""
        try:
            name, _parameters = self._routes.bind("localhost").match(request.path, request.method)
        except HTTPException:
            return None
        return self.operations[name]

    def request_errors(self, request: Request) -> list[str]:
        """What is invalid in a request; its path is relative to the base URL."""
        operation = self.find(request)
        if operation is None:
            return [f"{request.method} {request.path} is not in the document"]
        documented = {
            parameter["name"] for parameter in operation.definition["parameters"] if parameter["in"] == "query"
        }
        errors = [f"{operation}: unknown query parameter {name}" for name in set(request.args) - documented]
        if request.data and "requestBody" not in operation.definition:
            errors.append(f"{operation}: the request has a body")
        return errors + self._errors(operation, self._requests.validate_request, WerkzeugOpenAPIRequest(request))

    def response_errors(self, request: Request, response: Response) -> list[str]:
        """What is invalid in a response."""
        operation = self.find(request)
        assert operation, request
        parts = WerkzeugOpenAPIRequest(request), WerkzeugOpenAPIResponse(response)
        return self._errors(operation, self._responses.validate_response, *parts)

    @staticmethod
    def _errors(operation: Operation, validate: Any, *parts: Any) -> list[str]:
        try:
            validate(*parts)
        except OpenAPIError as error:
            details = getattr(error.__cause__, "schema_errors", None) or [error.__cause__ or error]
            return [f"{operation}: {error.__class__.__name__}: {detail_text(detail)}" for detail in details]
        return []


def detail_text(detail: Any) -> str:
    """An error of a schema with the place in the value that it is about."""
    return f"{detail.json_path}: {detail.message}" if hasattr(detail, "json_path") else str(detail)


class MockService:
    """The mock: what it was sent, and C(violations), the invalid requests and responses."""

    def __init__(self, contract: Contract) -> None:
        self.base_url = ""
        self.sent: list[tuple[str, Any]] = []
        self.violations: list[str] = []
        self._contract = contract
        self._bodies: dict[str, list[Any]] = {}
        self._statuses: dict[str, int] = {}

    def reply(self, operation: str, *bodies: Any) -> None:
        """Send these bodies instead of the document's example: one after another, the last one from then on."""
        assert operation in self._contract.operations
        self._bodies[operation] = list(bodies)

    def respond_once(self, operation: str, status: int) -> None:
        """Send the document's example of this status to the next request of this operation."""
        assert operation in self._contract.operations
        self._statuses[operation] = status

    def respond(self, environ: dict[str, Any], start_response: Any) -> Any:
        """The WSGI application."""
        # The document's paths are relative to the base URL.
        below = environ["PATH_INFO"].startswith(f"{BASE_PATH}/")
        path = environ["PATH_INFO"].removeprefix(BASE_PATH) if below else "/outside-of-the-base-url"
        request = Request({**environ, "PATH_INFO": path})
        errors = self._contract.request_errors(request)
        if errors:
            response = json_response(400, {"message": "; ".join(errors), "code": "", "request_id": "mock"})
        else:
            operation = self._contract.find(request)
            assert operation
            self.sent.append((str(operation), request.get_json() if request.data else None))
            exceptional = self._statuses.pop(str(operation), None)
            status, body = self._contract.document.example_response(operation, exceptional)
            bodies = self._bodies.get(str(operation), [])
            if bodies and not exceptional:
                body = bodies.pop(0) if len(bodies) > 1 else bodies[0]
            response = json_response(status, body)
            errors = self._contract.response_errors(request, response)
        self.violations += errors
        return response(environ, start_response)


def json_response(status: int, body: Any) -> Response:
    """A response with this JSON; without a body if there is none."""
    text = "" if body is None else json.dumps(body)
    return Response(text, status, mimetype="application/json" if text else None)


@contextmanager
def running_mock(contract: Contract) -> Iterator[MockService]:
    """Run a mock in a thread."""
    service = MockService(contract)
    server = make_server("127.0.0.1", 0, service.respond, threaded=True)
    service.base_url = f"http://127.0.0.1:{server.server_port}{BASE_PATH}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()
