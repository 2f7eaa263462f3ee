# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python imports this file when it starts. Writes syslog messages to a file; with SECRETS_ERROR, each request crashes."""

from __future__ import annotations

import http.client
import os
import syslog
from typing import Any


def write_to_file(*message: Any) -> None:
    """Replaces syslog.syslog."""
    with open(os.environ["SECRETS_SYSLOG"], "a", encoding="utf-8") as file:
        file.write(f"{message[-1]}\n")


def crash(connection: http.client.HTTPConnection, name: str, *values: Any) -> None:
    """Raise an unexpected error, as a library could, with a message that contains the key."""
    if name.lower() == "authorization":
        raise RuntimeError(f"can't send {name}: {values!r} or {values[0]}")
    put_header(connection, name, *values)


put_header = http.client.HTTPConnection.putheader
if "SECRETS_SYSLOG" in os.environ:
    syslog.syslog = write_to_file
if os.environ.get("SECRETS_ERROR"):
    http.client.HTTPConnection.putheader = crash
