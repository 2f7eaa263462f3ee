# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an OpenAPI document lacks of a row of the table of resources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._resources import kinds

ROWS = sorted(name for name, row in vars(kinds).items() if isinstance(row, kinds.Kind))
PARENTS = {"project": "projects", "branch": "branches"}


def resolved(document: Mapping[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """What a reference in a document refers to; any other node is returned unchanged."""
    while "$ref" in node:
        target: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


class Described:
    """The requests of a document, and the schemas of their bodies and responses."""

    def __init__(self, content: Mapping[str, Any], base_path: str = "") -> None:
        self._content = content
        self._paths = {
            re.sub(r"\{\w+\}", "{}", path.removeprefix(base_path)): item for path, item in content["paths"].items()
        }

    def __contains__(self, request: str) -> bool:
        method, path = request.split()
        return method.lower() in self._paths.get(path, {})

    def body(self, request: str) -> dict[str, Any]:
        """The schema of the request's body; empty without one."""
        return self._schema(self._operation(request).get("requestBody", {}))

    def response(self, request: str) -> dict[str, Any]:
        """The schema of the response to the request if it succeeds."""
        responses = self._operation(request)["responses"]
        return self._schema(next(responses[status] for status in responses if str(status).startswith("2")))

    def query(self, request: str) -> list[str]:
        """The names of the request's query parameters."""
        path = self._paths.get(request.split()[1], {})
        parameters = [*path.get("parameters", ()), *self._operation(request).get("parameters", ())]
        resolved_ones = (resolved(self._content, each) for each in parameters)
        return [each["name"] for each in resolved_ones if each["in"] == "query"]

    def at(self, schema: Mapping[str, Any], *names: str) -> dict[str, Any]:
        """The schema of a property, or of the items of an array in it; empty if there is none."""
        schema = self._merged(schema)
        for name in names:
            schema = self._merged(schema.get("properties", {}).get(name, {}))
            schema = self._merged(schema["items"]) if "items" in schema else schema
        return dict(schema)

    def _operation(self, request: str) -> dict[str, Any]:
        method, path = request.split()
        operation: dict[str, Any] = self._paths.get(path, {}).get(method.lower(), {"responses": {"200": {}}})
        return operation

    def _schema(self, message: Mapping[str, Any]) -> dict[str, Any]:
        media = resolved(self._content, message).get("content", {}).get("application/json", {})
        return self._merged(media.get("schema", {}))

    def _merged(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The schema without references, with the properties of its parts and alternatives."""
        schema = resolved(self._content, schema)
        merged = {**schema, "properties": dict(schema.get("properties", {})), "required": [*schema.get("required", [])]}
        for part in (*schema.get("allOf", ()), *schema.get("anyOf", ())):
            found = self._merged(part)
            merged["properties"].update(found["properties"])
            merged["required"] += found["required"]
            merged.update({"items": found["items"]} if "items" in found else {})
        return merged


def problems(kind: kinds.Kind, document: Described) -> list[str]:
    """The requests and fields of the row that the document lacks, and the fields that it requires and the row lacks."""
    listed = "".join(f"/{PARENTS[parent]}/{{}}" for parent in kind.parents) + f"/{kind.plural}"
    item = f"{listed}/{{}}"
    identity, changeable, fixed = (list(each.values()) for each in (kind.identity, kind.changeable, kind.fixed))
    shown = [kind.key, *identity, *changeable, *fixed]
    shown += [name for each in kind.actions.values() if not each.listed_with for name in each.sets_fields or ()]
    listed_fields = [name for each in kind.actions.values() if each.listed_with for name in each.sets_fields or ()]
    answer = document.response(f"GET {listed}")
    items = document.at(answer, kind.plural)
    requests: dict[str, list[tuple[Mapping[str, Any], list[str], bool]]] = {
        f"GET {listed}": [(answer, [kind.plural], False), (items, listed_fields, False)],
        f"GET {item}": [(document.at(document.response(f"GET {item}"), kind.wrapper), shown, False)],
    }
    if kind.creation:
        del requests[f"GET {item}"]
        requests[f"GET {listed}"].append((items, shown, False))
        create = "POST /projects/{}/branches/{}/snapshot"
        fields = {"properties": dict.fromkeys(document.query(create)), "required": []}
        requests[create] = [(fields, [*identity, *kind.fields.values()], True)]
        requests[f"DELETE {item}"] = []
    # No option sets the id: such a resource is found, and not created.
    elif "id" not in identity:
        body = document.body(f"POST {listed}")
        parts = {name for part in kind.beside_wrapper.values() for each in part.values() for name in each}
        fields = [*identity, *kind.fields.values()]
        wrapped = document.at(body, kind.wrapper)
        requests[f"POST {listed}"] = [(body, [kind.wrapper, *sorted(parts)], True), (wrapped, fields, True)]
        requests[f"DELETE {item}"] = []
    if changeable:
        body = document.body(f"PATCH {item}")
        requests[f"PATCH {item}"] = [(body, [kind.wrapper], True), (document.at(body, kind.wrapper), changeable, False)]
    for action in kind.actions.values():
        place = "/projects/{}" + "".join(f"/{each if each[0] != '{' else '{}'}" for each in action.below)
        request = f"{action.method} {place if action.below else item}/{action.path}"
        requests[request] = [(document.body(request), [*action.fields.values(), *action.defaults], True)]
    found = [f"there is no {request}" for request in requests if request not in document]
    for request, compared in requests.items():
        for schema, names, is_complete in compared if request in document else ():
            found += [f"{request} has no {name}" for name in names if name not in schema["properties"]]
            found += [f"{request} requires {name}" for name in schema["required"] if is_complete and name not in names]
    return found
