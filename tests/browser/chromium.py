# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controls a headless Chromium by its DevTools protocol over a pipe, with the standard library only."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
TIMEOUT = 60


class Page:
    """One tab, and the events since a page was opened in it."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to_browser, self._from_browser = to_browser, from_browser
        self._unread = b""
        self._session: str | None = None
        self._number = 0
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {
            "id": self._number,
            "method": method,
            "params": params,
            **({"sessionId": self._session} if self._session else {}),
        }
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            received = self._read()
            if received.get("id") == self._number:
                if "error" in received:
                    raise RuntimeError(f"{method}: {received['error']['message']}")
                result: dict[str, Any] = received["result"]
                return result

    def open(self, path: Path, query: str = "") -> None:
        """Open a file and wait until it is rendered."""
        self.events.clear()
        self.call("Page.navigate", url=f"{path.resolve().as_uri()}?{query}" if query else path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._read()
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    def evaluate(self, expression: str) -> Any:
        """Evaluate a JavaScript expression; the page's Content Security Policy does not apply to the debugger."""
        evaluated = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in evaluated:
            raise RuntimeError(evaluated["exceptionDetails"]["exception"]["description"])
        return evaluated["result"].get("value")

    def emulate(self, width: int, scheme: str = "light") -> None:
        """Set the width of the window in pixels, and the color scheme that the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def console_messages(self) -> list[str]:
        methods = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in methods]

    def requested_urls(self) -> list[str]:
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def _read(self) -> dict[str, Any]:
        """Read the next message; events are stored."""
        while b"\0" not in self._unread:
            if not select.select([self._from_browser], [], [], TIMEOUT)[0]:
                raise TimeoutError(f"Chromium sent nothing for {TIMEOUT} s.")
            received = os.read(self._from_browser, 1 << 20)
            if not received:
                raise ConnectionError("Chromium exited.")
            self._unread += received
        text, self._unread = self._unread.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


def program() -> str:
    """The path of the browser; raises RuntimeError if it is missing."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise RuntimeError(
            "Chromium was not found. Install it, or set the environment variable CHROMIUM to its command."
        )
    return found


@contextmanager
def chromium() -> Iterator[Page]:
    """Start a browser with a temporary profile, and stop it in the end."""
    to_browser, from_browser = os.pipe(), os.pipe()

    def set_up_descriptors() -> None:
        # The protocol requires these file descriptors. Either may be in use by a pipe, so copy the pipes first.
        ends = os.dup(to_browser[0]), os.dup(from_browser[1])
        for number, end in enumerate([os.dup(end) for end in ends], start=3):
            os.dup2(end, number)

    with tempfile.TemporaryDirectory(prefix="clouddb-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program(), *FLAGS, f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=set_up_descriptors,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            yield Page(to_browser[1], from_browser[0])
        finally:
            os.close(to_browser[1])
            os.close(from_browser[0])
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
