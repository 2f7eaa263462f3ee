# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin of proxy.py: records what the proxy receives, and resolves every host name to this machine.

The proxy's process loads this file, so it imports nothing of the collection.
"""

from __future__ import annotations

import base64
import json
import os
from typing import Any

from proxy.http.exception import HttpRequestRejected
from proxy.http.proxy import HttpProxyBasePlugin

CREDENTIALS = b"Basic " + base64.b64encode(b"somebody:proxy-password")


class RecordingProxy(HttpProxyBasePlugin):  # type: ignore[misc]
    def before_upstream_connection(self, request: Any) -> Any:
        headers = {name.decode(): value.decode() for name, (_name, value) in (request.headers or {}).items()}
        received = {"method": request.method.decode(), "host": request.host.decode(), "headers": headers}
        with open(os.environ["PROXY_RECORD"], "a", encoding="utf-8") as file:
            file.write(json.dumps(received) + "\n")
        if received["host"].startswith("guarded.") and headers.get("proxy-authorization", "").encode() != CREDENTIALS:
            raise HttpRequestRejected(status_code=407, reason=b"Proxy Authentication Required")
        return request

    def resolve_dns(self, host: str, port: int) -> tuple[str, None]:
        return "127.0.0.1", None
