# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the service with large accounts: it sends prepared pages, so that it takes little of the measured time."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OPERATIONS_PER_PROJECT = 500
PROJECTS_PER_PAGE = 100
PROJECT_ID = b"wispy-lake-00000000"
ACTIONS = ("create_branch", "start_compute", "suspend_compute", "apply_config")
PATH = re.compile(
    r"/(?P<projects>\d+)/api/v2/projects(?:/(?P<project_id>[\w-]+)/operations)?\?(?P<query>.*)|.*", re.ASCII
)


def project(number: int) -> dict[str, Any]:
    return {
        "id": f"wispy-lake-{number:08d}",
        "name": f"shop {number}",
        "platform_id": "aws",
        "region_id": "aws-eu-central-1",
        "provisioner": "k8s-pod",
        "pg_version": 17,
        "locked": False,
        "cpu_used_sec": 1240,
        "proxy_host": "eu-central-1.aws.db.example.com",
        "branch_logical_size_limit": 204800,
        "created_at": "2026-03-02T08:30:12.000000Z",
        "updated_at": "2026-11-20T17:45:01.000000Z",
    }


def operation(number: int) -> dict[str, Any]:
    moment = f"2026-11-{1 + number % 28:02d}T09:{number % 60:02d}:07.123456Z"
    return {
        "id": f"a07f8772-1877-4da9-a939-{number:012d}",
        "project_id": PROJECT_ID.decode(),
        "branch_id": "br-small-term-683261",
        "endpoint_id": "ep-square-glade-875320",
        "action": ACTIONS[number % len(ACTIONS)],
        "status": "failed" if number % 50 == 0 else "finished",
        "failures_count": 0,
        "created_at": moment,
        "updated_at": moment,
    }


def page(field: str, items: list[dict[str, Any]], cursor: str) -> bytes:
    return json.dumps({field: items, "pagination": {"cursor": cursor}}).encode()


# All projects have the same operations, in one page.
OPERATIONS = page("operations", [operation(number) for number in range(OPERATIONS_PER_PROJECT)], "end")
NO_OPERATIONS = page("operations", [], "end")


def content(path: str) -> bytes:
    """The page at a path such as C(/200/api/v2/projects?cursor=100), of an account with that number of projects."""
    match = PATH.fullmatch(path)
    assert match and match["projects"], path
    cursor = re.search(r"cursor=(\w+)", match["query"])
    if match["project_id"]:
        return NO_OPERATIONS if cursor else OPERATIONS.replace(PROJECT_ID, match["project_id"].encode())
    first = int(cursor[1]) if cursor else 0
    end = min(first + PROJECTS_PER_PAGE, int(match["projects"]))
    return page("projects", [project(number) for number in range(first, end)], str(end))


class Handler(BaseHTTPRequestHandler):
    """Responds to a GET request with the page of its path."""

    protocol_version = "HTTP/1.1"
    # Headers and body leave in one packet, so that no delayed acknowledgment slows the response.
    wbufsize = -1

    def do_GET(self) -> None:
        body = content(self.path if "?" in self.path else f"{self.path}?")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@contextmanager
def running() -> Iterator[str]:
    """Serve all accounts on a loopback address in a thread. The value is the address before the number of projects."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
