# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenAPI document of the public service: its operations, and an example of each request and response."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonschema_path.loaders import JsonschemaSafeLoader

# Examples that are invalid by their own schemas. One made from the schema replaces them.
INVALID_EXAMPLES = {"GET /organizations/{org_id}/invitations": "invited_by is an address instead of a UUID"}

METHODS = ("get", "post", "put", "patch", "delete")
EXAMPLES_BY_FORMAT = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "ops@example.com",
    "uri": "https://example.com",
    "uuid": "a07f8772-1877-4da9-a939-3a3ae62d1d8d",
}


class Operation(NamedTuple):
    """An operation of the document, such as GET /projects/{project_id}. C(definition) also has the path's parameters."""

    method: str
    path: str
    definition: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class ExampleRequest(NamedTuple):
    """A valid request: its path has no placeholders; C(body) is None for a request without one."""

    path: str
    query: dict[str, Any]
    body: Any


class Document:
    """An OpenAPI 3.0 document."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @classmethod
    def read(cls, file: Path) -> Document:
        """Read a YAML file. Timestamps stay strings; statuses, numbers in YAML, become strings as in JSON."""
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=JsonschemaSafeLoader)
        document = cls(json.loads(json.dumps(content)))
        document.content = document._without_all_of(document.content)
        document._document_discriminators()
        return document

    def operations(self) -> list[Operation]:
        return [
            Operation(method.upper(), path, self._with_parameters(item, item[method]))
            for path, item in self.content["paths"].items()
            for method in METHODS
            if method in item
        ]

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        """What a reference refers to; any other node is returned unchanged."""
        while "$ref" in node:
            target: Any = self.content
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            node = target
        return node

    def has_only_json(self, operation: Operation) -> bool:
        """Whether the bodies of the request and of all responses are JSON."""
        bodies = [operation.definition.get("requestBody", {}), *operation.definition["responses"].values()]
        return all(set(self.resolve(body).get("content", {})) <= {"application/json"} for body in bodies)

    def example_request(self, operation: Operation) -> ExampleRequest:
        """A request with the required parameters and, if the operation takes one, a body."""
        path, query = operation.path, {}
        for parameter in operation.definition["parameters"]:
            if parameter.get("required"):
                value = parameter.get("example") or self.example(parameter["schema"], parameter["name"])
                if parameter["in"] == "path":
                    path = path.replace("{" + parameter["name"] + "}", str(value))
                else:
                    query[parameter["name"]] = value
        body = self.resolve(operation.definition.get("requestBody", {}))
        return ExampleRequest(path, query, self._example_json(body))

    def successes(self, operation: Operation) -> list[int]:
        """The statuses of successful responses."""
        return sorted(int(status) for status in operation.definition["responses"] if status.startswith("2"))

    def example_response(self, operation: Operation, status: int | None = None) -> tuple[int, Any]:
        """Status and body of a response, the first successful one if no status is given. The body is None without JSON."""
        responses = operation.definition["responses"]
        status = status or self.successes(operation)[0]
        response = self.resolve(responses.get(str(status)) or responses["default"])
        return status, self._example_json(response, str(operation) not in INVALID_EXAMPLES)

    def example(self, schema: dict[str, Any], name: str = "") -> Any:
        """A value that is valid by this schema, the schema's example if it has one. C(name) is that of the field."""
        schema = self.resolve(schema)
        for keyword in ("example", "default"):
            if keyword in schema:
                return schema[keyword]
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema:
                return self.example(schema[keyword][0], name)
        if "enum" in schema:
            return schema["enum"][0]
        if schema.get("type") == "array":
            return [self.example(schema["items"], name)]
        if schema.get("type") in ("integer", "number"):
            return schema.get("minimum", 1)
        if schema.get("type") == "boolean":
            return True
        if schema.get("type") == "string":
            return EXAMPLES_BY_FORMAT.get(schema.get("format", ""), f"any{name}".replace("_", ""))
        return {field: self.example(value, field) for field, value in schema.get("properties", {}).items()}

    def _example_json(self, holder: dict[str, Any], documented: bool = True) -> Any:
        """The example in JSON of a request's or response's body: the documented one, or one made from the schema."""
        media = holder.get("content", {}).get("application/json")
        if media is None:
            return None
        if documented and "example" in media:
            return media["example"]
        for example in media.get("examples", {}).values() if documented else ():
            return self.resolve(example)["value"]
        return self.example(media["schema"])

    def _with_parameters(self, item: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
        parameters = [*item.get("parameters", []), *operation.get("parameters", [])]
        return {**operation, "parameters": [self.resolve(parameter) for parameter in parameters]}

    def _document_discriminators(self) -> None:
        """Add the discriminators of alternatives: the document names them, but the alternatives lack them."""
        for schema in self.content["components"]["schemas"].values():
            if "discriminator" in schema:
                name, mapping = schema["discriminator"]["propertyName"], schema["discriminator"]["mapping"]
                for kind, reference in mapping.items():
                    properties = self.resolve({"$ref": reference}).setdefault("properties", {})
                    properties.setdefault(name, {"type": "string", "enum": [kind]})

    def _without_all_of(self, node: Any) -> Any:
        """A copy in which unknown properties can be forbidden: no schema is one part of an object, as in C(allOf)."""
        if isinstance(node, list):
            return [self._without_all_of(value) for value in node]
        if not isinstance(node, dict):
            return node
        merged = {name: self._without_all_of(value) for name, value in node.items() if name != "allOf"}
        for part in node.get("allOf", []):
            for name, value in self._without_all_of(self.resolve(part)).items():
                if name == "properties":
                    merged[name] = {**merged.get(name, {}), **value}
                elif name == "required":
                    merged[name] = sorted({*merged.get(name, []), *value})
                else:
                    merged.setdefault(name, value)
        if "oneOf" in merged or "anyOf" in merged:
            merged.setdefault("additionalProperties", True)
        return merged
