# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sandboxes for the measurements, and access to their request logs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

SERVER = Path(__file__).parents[2] / "roles" / "sandbox" / "files"
API_KEY = "key-of-the-benchmark-0123456789abcdef0123456789abcdef"


class Sandbox:
    """A client of a running sandbox, independent of the code that is measured."""

    def __init__(self, base_url: str):
        self.base_url = base_url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {API_KEY}"

    def get(self, path: str, **query: Any) -> Any:
        response = self._session.get(self.base_url + path, params=query, timeout=60)
        response.raise_for_status()
        return response.json()

    def projects(self, **query: Any) -> list[dict[str, Any]]:
        """The first 400 projects."""
        found: list[dict[str, Any]] = self.get("/projects", limit=400, **query)["projects"]
        return found

    def requests(self) -> list[dict[str, Any]]:
        """The latest 10,000 entries of the sandbox's request log."""
        found: list[dict[str, Any]] = self._control("GET", "/requests")["requests"]
        return found

    def clear_requests(self) -> None:
        self._control("DELETE", "/requests")

    def set_rate_limit(self, per_minute: int, burst: int) -> None:
        """Reject requests above this rate with 429 from now on."""
        self._control("PUT", "/rate_limit", {"per_minute": per_minute, "burst": burst})

    def _control(self, method: str, path: str, body: Any = None) -> Any:
        response = self._session.request(
            method, self.base_url.replace("/api/v2", "/_sandbox") + path, json=body, timeout=60
        )
        response.raise_for_status()
        return response.json()


@contextmanager
def running(seed: dict[str, Any]) -> Iterator[Sandbox]:
    """Run a sandbox with the account of a seed file's content in a separate process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {option: folder / option for option in ("database", "seed", "api-key-file", "ready-file")}
        files["seed"].write_text(json.dumps(seed), encoding="utf-8")
        files["api-key-file"].write_text(API_KEY, encoding="utf-8")
        command = [sys.executable, "-m", "clouddb_sandbox", *(f"--{option}={file}" for option, file in files.items())]
        log = folder / "log"
        with log.open("wb") as output, subprocess.Popen(command, cwd=SERVER, stderr=output) as process:
            try:
                while not files["ready-file"].exists():
                    if process.poll() is not None:
                        raise RuntimeError(log.read_text(encoding="utf-8"))
                    time.sleep(0.1)
                yield Sandbox(json.loads(files["ready-file"].read_text(encoding="utf-8"))["base_url"])
            finally:
                process.terminate()
