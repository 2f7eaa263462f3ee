# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of the API server of Kubernetes, which has only secrets."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from fake_service import FakeService
from scripted_service import Request

SECRET_PATH = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/secrets(?:/(?P<name>[^/]+))?")
MERGE_PATCHES = ("application/strategic-merge-patch+json", "application/merge-patch+json")
GROUPS = {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
VERBS = ["create", "delete", "get", "list", "patch", "update"]
RESOURCE = {"name": "secrets", "singularName": "secret", "namespaced": True, "kind": "Secret", "verbs": VERBS}
DISCOVERY: dict[str, Any] = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": GROUPS,
    "/apis/": GROUPS,
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [RESOURCE]},
}


class KubernetesApi(FakeService):
    """The secrets by namespace and name. C(before_write) is called before a secret is created or changed."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.secrets: dict[tuple[str, str], dict[str, Any]] = {}
        self.before_write: Callable[[], None] = lambda: None
        self._version = 0

    def data(self, namespace: str, name: str) -> dict[str, str]:
        """The decoded data of a secret; empty if there is no secret."""
        secret = self.secrets.get((namespace, name), {})
        return {field: base64.b64decode(value).decode() for field, value in secret.get("data", {}).items()}

    def put(self, namespace: str, name: str, **data: str) -> None:
        """Create or change a secret, as somebody else would."""
        encoded = {field: base64.b64encode(value.encode()).decode() for field, value in data.items()}
        self._store(namespace, name, {**self.secrets.get((namespace, name), {}).get("data", {}), **encoded})

    def result(self, request: Request) -> tuple[int, Any]:
        if request.method == "GET" and request.path in DISCOVERY:
            return 200, DISCOVERY[request.path]
        found = SECRET_PATH.fullmatch(request.path)
        if not found:
            raise KeyError(request.path)
        namespace, name = found["namespace"], found["name"]
        if request.method == "GET" and name:
            secret = self.secrets.get((namespace, name))
            return (200, secret) if secret else _status(404, "NotFound", f'secrets "{name}" not found')
        if request.method == "POST" and not name:
            return self._create(namespace, request.json)
        if request.method == "PATCH" and name and request.headers.get_content_type() in MERGE_PATCHES:
            return self._patch(namespace, name, request.json)
        return _status(405, "MethodNotAllowed", f"{request.method} {request.headers.get_content_type()}")

    def _create(self, namespace: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.before_write()
        metadata = body["metadata"]
        if "resourceVersion" in metadata:
            return _status(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        if (namespace, metadata["name"]) in self.secrets:
            return _status(409, "AlreadyExists", f'secrets "{metadata["name"]}" already exists')
        return 201, self._store(namespace, metadata["name"], body.get("data", {}))

    def _patch(self, namespace: str, name: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.before_write()
        secret = self.secrets.get((namespace, name))
        if not secret:
            return _status(404, "NotFound", f'secrets "{name}" not found')
        if body["metadata"].get("resourceVersion") not in (None, secret["metadata"]["resourceVersion"]):
            return _status(409, "Conflict", "the object has been modified; apply your changes to the latest version")
        data = {**secret["data"], **body.get("data", {})}
        return 200, self._store(namespace, name, {field: value for field, value in data.items() if value is not None})

    def _store(self, namespace: str, name: str, data: dict[str, str]) -> dict[str, Any]:
        for value in data.values():
            base64.b64decode(value, validate=True)
        self._version += 1
        metadata = {"namespace": namespace, "name": name, "resourceVersion": str(self._version)}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}
        self.secrets[namespace, name] = secret
        return secret


def _status(code: int, reason: str, message: str) -> tuple[int, Any]:
    details = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return code, {"kind": "Status", "apiVersion": "v1", **details}
