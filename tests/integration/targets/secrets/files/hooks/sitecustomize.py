# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python reads this when it starts: what goes to syslog goes to a file, and SECRETS_TROUBLE makes a process crash or die."""

from __future__ import annotations

import http.client
import os
import signal
import syslog
from typing import Any, NoReturn


def write_down(*message: Any) -> None:
    """In place of syslog.syslog."""
    with open(os.environ["SECRETS_SYSLOG"], "a", encoding="utf-8") as file:
        file.write(f"{message[-1]}\n")


def crash(connection: http.client.HTTPConnection, name: str, *values: Any) -> None:
    """A fault in a library, of a kind that nobody expects, and whose message is as indiscreet as can be."""
    if name.lower() == "authorization":
        raise RuntimeError(f"can't send {name}: {values!r} or {values[0]}")
    put_header(connection, name, *values)


def die(*paths: Any, **options: Any) -> NoReturn:
    """What kill -9 does just before a file is renamed into place."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it goes on")


put_header = http.client.HTTPConnection.putheader
if "SECRETS_SYSLOG" in os.environ:
    syslog.syslog = write_down
if os.environ.get("SECRETS_TROUBLE") == "crash":
    http.client.HTTPConnection.putheader = crash
if os.environ.get("SECRETS_TROUBLE") == "die":
    os.replace = die
