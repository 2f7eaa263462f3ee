# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A webhook for one message.

``webhook.py PORT_FILE MESSAGE_FILE`` writes its port to PORT_FILE and the message to MESSAGE_FILE, and exits after it or after a minute.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Webhook(BaseHTTPRequestHandler):
    """Writes the body of a POST to MESSAGE_FILE."""

    def do_POST(self) -> None:
        """Respond with 204, as chat services do."""
        Path(sys.argv[2]).write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()


with HTTPServer(("127.0.0.1", 0), Webhook) as server:
    server.timeout = 60
    Path(sys.argv[1]).write_text(str(server.server_port), encoding="ascii")
    server.handle_request()
