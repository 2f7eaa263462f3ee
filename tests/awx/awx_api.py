# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of AWX's API. It stores what the modules of awx.awx send, without validating it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from fake_service import FakeService
from scripted_service import Request

ENCRYPTED = "$encrypted$"


class Awx(FakeService):
    """The stored objects by kind, such as C(job_templates), and the requests on them."""

    headers = {"X-API-Product-Name": "AWX"}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.objects: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.after_change: Callable[[], None] = lambda: None
        for name in ("Default", "Platform"):
            self.add("organizations", {"name": name})

    def add(self, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Store a new object and return it; responses of the API mask its secrets."""
        number = 1 + sum(map(len, self.objects.values()))
        url = f"/api/v2/{kind}/{number}/"
        new = {
            "id": number,
            "url": url,
            "related": {"survey_spec": f"{url}survey_spec/"},
            "summary_fields": {},
            "scm_revision": "",
            **fields,
        }
        self.objects[kind].append(new)
        return new

    def one(self, kind: str, name: str) -> dict[str, Any]:
        [found] = [each for each in self.objects[kind] if each["name"] == name]
        return found

    def result(self, request: Request) -> tuple[int, Any]:
        kind, *rest = request.path.removeprefix("/api/v2/").strip("/").split("/")
        if not rest and request.method == "POST":
            return 201, self._shown(self.add(kind, request.json))
        if not rest:
            return 200, self._listed(kind, dict(request.query))
        [found] = [each for each in self.objects[kind] if each["id"] == int(rest[0])]
        if request.method == "PATCH":
            found.update(request.json)
            self.after_change()
        if len(rest) == 1:
            return 200, self._shown(found)
        return self._related(found, rest[1], request.method, request.json)

    def _listed(self, kind: str, query: dict[str, str]) -> dict[str, Any]:
        objects = self.objects["job_templates" if kind == "unified_job_templates" else kind]
        matching = [each for each in objects if all(str(each.get(field)) == value for field, value in query.items())]
        return {"count": len(matching), "next": None, "results": [self._shown(each) for each in matching]}

    def _related(self, found: dict[str, Any], name: str, method: str, body: dict[str, Any]) -> tuple[int, Any]:
        if name == "survey_spec":
            if method == "POST":
                found["_survey_spec"] = body
            return 200, found.get("_survey_spec", {})
        associated = found.setdefault(f"_{name}", [])
        if method == "POST":
            associated.append(body["id"])
            return 204, None
        return 200, {"count": len(associated), "next": None, "results": [{"id": each} for each in associated]}

    def _shown(self, found: dict[str, Any]) -> dict[str, Any]:
        if "inputs" not in found:
            return found
        masked = {name: ENCRYPTED for name in ("api_key", "api_key_id") if found["inputs"].get(name)}
        return {**found, "inputs": {**found["inputs"], **masked}}
