# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python imports this file when it starts. Writes syslog messages to a file; SECRETS_ERROR makes a process crash or kills it."""

from __future__ import annotations

import http.client
import os
import signal
import syslog
from typing import Any, NoReturn


def write_to_file(*message: Any) -> None:
    """Replaces syslog.syslog."""
    with open(os.environ["SECRETS_SYSLOG"], "a", encoding="utf-8") as file:
        file.write(f"{message[-1]}\n")


def crash(connection: http.client.HTTPConnection, name: str, *values: Any) -> None:
    """Raise an unexpected error, as a library could, with a message that contains the key."""
    if name.lower() == "authorization":
        raise RuntimeError(f"can't send {name}: {values!r} or {values[0]}")
    put_header(connection, name, *values)


def kill(*paths: Any, **options: Any) -> NoReturn:
    """Kill the process just before a file is renamed into place."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the process was not killed")


put_header = http.client.HTTPConnection.putheader
if "SECRETS_SYSLOG" in os.environ:
    syslog.syslog = write_to_file
if os.environ.get("SECRETS_ERROR") == "crash":
    http.client.HTTPConnection.putheader = crash
if os.environ.get("SECRETS_ERROR") == "kill":
    os.replace = kill
