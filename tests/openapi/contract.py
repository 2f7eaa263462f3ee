# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of requests and responses by the OpenAPI document."""

from __future__ import annotations

from typing import Any

from document import Document, Operation
from openapi_core import Config, OpenAPI
from openapi_core.contrib.werkzeug import WerkzeugOpenAPIRequest, WerkzeugOpenAPIResponse
from openapi_core.exceptions import OpenAPIError
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response


class Contract:
    """Checks requests and responses by the document. The paths of requests are relative to the base URL."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.operations = {str(operation): operation for operation in document.operations()}
        content = {**document.content, "servers": [{"url": "/"}]}
        # The service may send fields that the document lacks; a request must not have any.
        self._responses = OpenAPI.from_dict(content)
        strict = Config(spec_validator_cls=None, additional_properties_default_policy="forbid")
        self._requests = OpenAPI.from_dict(content, strict)
        rules = [
            Rule(operation.path.replace("{", "<").replace("}", ">"), methods=[operation.method], endpoint=name)
            for name, operation in self.operations.items()
        ]
        self._routes = Map(rules, strict_slashes=True, redirect_defaults=False, merge_slashes=False)

    def request_errors(self, request: Request) -> list[str]:
        """What is invalid in a request."""
        try:
            name, _parameters = self._routes.bind("localhost").match(request.path, request.method)
        except HTTPException:
            return [f"{request.method} {request.path} is not in the document"]
        operation = self.operations[name]
        errors = [f"unknown query parameter {name}" for name in set(request.args) - query_parameters(operation)]
        if request.data and "requestBody" not in operation.definition:
            errors.append("the request has a body")
        return errors + errors_of(self._requests.validate_request, WerkzeugOpenAPIRequest(request))

    def response_errors(self, request: Request, response: Response) -> list[str]:
        """What is invalid in the response to a valid request."""
        parts = WerkzeugOpenAPIRequest(request), WerkzeugOpenAPIResponse(response)
        return errors_of(self._responses.validate_response, *parts)


def query_parameters(operation: Operation) -> set[str]:
    return {parameter["name"] for parameter in operation.definition["parameters"] if parameter["in"] == "query"}


def errors_of(validate: Any, *parts: Any) -> list[str]:
    try:
        validate(*parts)
    except OpenAPIError as error:
        details = getattr(error.__cause__, "schema_errors", None) or [error.__cause__ or error]
        return [f"{error.__class__.__name__}: {detail_text(detail)}" for detail in details]
    return []


def detail_text(detail: Any) -> str:
    """An error of a schema with the place in the value that it is about."""
    return f"{detail.json_path}: {detail.message}" if hasattr(detail, "json_path") else str(detail)
