# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the API of Hetzner Cloud: the list of SSH keys, for hetzner.hcloud.ssh_key_info."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAMES = ("shop", "blog", "wiki")
SSH_KEYS = [
    {
        "id": number,
        "name": name,
        "fingerprint": ":".join([f"{number:02x}"] * 16),
        "public_key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA {name}",
        "labels": {},
        "created": "2024-01-01T00:00:00Z",
    }
    for number, name in enumerate(NAMES, 1)
]
PAGINATION = {
    "page": 1,
    "per_page": 50,
    "previous_page": None,
    "next_page": None,
    "last_page": 1,
    "total_entries": len(SSH_KEYS),
}
RESPONSES = {"/v1/ssh_keys": (200, {"ssh_keys": SSH_KEYS, "meta": {"pagination": PAGINATION}})}
NOT_FOUND = (404, {"error": {"code": "not_found", "message": "There is no such resource."}})


class Handler(BaseHTTPRequestHandler):
    """Responds to a GET request with one of C(RESPONSES)."""

    protocol_version = "HTTP/1.1"
    # Headers and body leave in one packet, so that no delayed acknowledgment slows the response.
    wbufsize = -1

    def do_GET(self) -> None:
        status, content = RESPONSES.get(self.path.partition("?")[0], NOT_FOUND)
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@contextmanager
def running() -> Iterator[str]:
    """Serve the API on a loopback address in a thread. The value is its endpoint, for the option C(api_endpoint)."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
