# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenAPI document of the public service: its operations, and an example of each request and response."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonschema_path.loaders import JsonschemaSafeLoader

from ansible_collections.clouddb.control.tests.unit.support.openapi_rows import resolved

METHODS = ("get", "post", "put", "patch", "delete")


class Operation(NamedTuple):
    """An operation of the document, such as GET /projects/{project_id}. C(definition) also has the path's parameters."""

    method: str
    path: str
    definition: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


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
        return document

    def operations(self) -> list[Operation]:
        return [
            Operation(method.upper(), path, self._with_parameters(item, item[method]))
            for path, item in self.content["paths"].items()
            for method in METHODS
            if method in item
        ]

    def example_body(self, operation: Operation) -> Any:
        """The documented example of a request's body; None for a request without one."""
        body = resolved(self.content, operation.definition.get("requestBody", {}))
        if not body:
            return None
        media = body["content"]["application/json"]
        return media["example"] if "example" in media else next(iter(media["examples"].values()))["value"]

    def _with_parameters(self, item: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
        parameters = [*item.get("parameters", []), *operation.get("parameters", [])]
        return {**operation, "parameters": [resolved(self.content, parameter) for parameter in parameters]}

    def _without_all_of(self, node: Any) -> Any:
        """A copy in which unknown properties can be forbidden: no schema is one part of an object, as in C(allOf)."""
        if isinstance(node, list):
            return [self._without_all_of(value) for value in node]
        if not isinstance(node, dict):
            return node
        merged = {name: self._without_all_of(value) for name, value in node.items() if name != "allOf"}
        for part in node.get("allOf", []):
            for name, value in self._without_all_of(resolved(self.content, part)).items():
                if name == "properties":
                    merged[name] = {**merged.get(name, {}), **value}
                elif name == "required":
                    merged[name] = sorted({*merged.get(name, []), *value})
                else:
                    merged.setdefault(name, value)
        return merged
