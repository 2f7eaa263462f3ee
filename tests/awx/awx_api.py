# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of AWX's API. It stores what the modules of awx.awx send, without validating it."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

ENCRYPTED = "$encrypted$"
TOKEN = "token-for-the-fake"


class Awx:
    """The stored objects by kind, such as C(job_templates), and the requests on them."""

    def __init__(self) -> None:
        self.host = ""
        self.objects: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.after_change: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
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
        """The only object with this name."""
        [found] = [each for each in self.objects[kind] if each["name"] == name]
        return found

    def respond(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        """The status and the JSON body of the response to a request."""
        with self._lock:
            kind, *rest = path.removeprefix("/api/v2/").strip("/").split("/")
            if not rest:
                return (
                    (201, self._shown(self.add(kind, body))) if method == "POST" else (200, self._listed(kind, query))
                )
            [found] = [each for each in self.objects[kind] if each["id"] == int(rest[0])]
            if method == "PATCH":
                found.update(body)
                self.after_change()
            if len(rest) == 1:
                return 200, self._shown(found)
            return self._related(found, rest[1], method, body)

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


@contextmanager
def fake_awx() -> Iterator[Awx]:
    """Run the fake; it has the organizations C(Default) and C(Platform) and no other objects."""
    awx = Awx()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            parts = urlsplit(self.path)
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, response = 401, {"detail": "Authentication credentials were not provided."}
            else:
                status, response = awx.respond(self.command, parts.path, dict(parse_qsl(parts.query)), body)
            self.send_response(status)
            self.send_header("X-API-Product-Name", "AWX")
            self.end_headers()
            if response is not None:
                self.wfile.write(json.dumps(response).encode())

        do_GET = do_POST = do_PATCH = _handle

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        awx.host = f"http://127.0.0.1:{server.server_port}"
        try:
            yield awx
        finally:
            server.shutdown()
