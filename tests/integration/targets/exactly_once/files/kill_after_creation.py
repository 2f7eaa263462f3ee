# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a command and kills all of its processes some time after it has sent a POST: C(SECONDS REQUESTS_URL COMMAND...).

Prints the number of killed processes: 0 if the command ended before.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path


def has_posted(requests_url: str) -> bool:
    request = urllib.request.Request(requests_url, headers={"Authorization": f"Bearer {os.environ['CLOUDDB_API_KEY']}"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return any(sent["method"] == "POST" for sent in json.load(response)["requests"])


def process_tree(process_id: int) -> list[int]:
    """The process and its descendants."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            text = status.read_text(encoding="utf-8", errors="replace")
            parents[int(text.split(" ", 1)[0])] = int(text.rpartition(")")[2].split()[1])
    found = [process_id]
    for parent in found:
        found += [child for child, its_parent in parents.items() if its_parent == parent]
    return found


def main() -> None:
    seconds, requests_url, *command = sys.argv[1:]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    ) as process:
        while process.poll() is None and not has_posted(requests_url):
            time.sleep(0.01)
        time.sleep(float(seconds))
        killed = []
        while process.poll() is None:
            # Processes that are started in the meantime are found in the next iteration.
            killed = process_tree(process.pid)
            for process_id in reversed(killed):
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
            time.sleep(0.01)
    print(len(killed))


if __name__ == "__main__":
    main()
