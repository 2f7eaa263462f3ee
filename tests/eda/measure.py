# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the event source: ``measure.py [--projects 100] [--seconds 300]``; needs what requirements.txt has.

A sandbox in a process of its own, on its own clock at normal speed; operations start in random projects, one a second, and
take up to 40 seconds. The source is run as ansible-rulebook runs it. What has happened is read from the sandbox's database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import runpy
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import requests

ROOT = Path(__file__).resolve().parents[2]
MAX_SECONDS = 40.0


class Recorder:
    """The events, each with its time of arrival."""

    def __init__(self) -> None:
        self.events: list[tuple[float, dict[str, Any]]] = []

    async def put(self, event: dict[str, Any], /) -> None:
        self.events.append((time.time(), event))


def start_work(base_url: str, key: str, seconds: float) -> None:
    """Start an operation a second, in random projects, for C(seconds)."""
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {key}"
    chance = random.Random(1)
    projects: list[str] = []
    page = session.get(f"{base_url}/projects", params={"limit": 400}, timeout=30).json()
    projects = [project["id"] for project in page["projects"]]
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        project = chance.choice(projects)
        ended = chance.uniform(2, MAX_SECONDS)
        timeline = [
            [0, "scheduling"],
            [round(chance.uniform(0.5, 1.9), 3), "running"],
            [ended, "failed" if chance.random() < 0.1 else "finished"],
        ]
        plan = {"action": "create_branch", "project_id": project, "timeline": timeline}
        session.post(base_url.replace("/api/v2", "/_sandbox/operation_plans"), json=plan, timeout=30)
        # A busy project refuses it with 423.
        session.post(
            f"{base_url}/projects/{project}/branches",
            json={"branch": {"name": f"b{number}"}, "endpoints": []},
            timeout=30,
        )
        time.sleep(1)


def changes(database: Path, since: float, until: float) -> dict[tuple[str, str], float]:
    """The moments, in seconds, of all changes in this time, by the id of the operation and its new status."""
    found = {}
    with sqlite3.connect(database) as connection:
        for name, created_at, timeline in connection.execute("SELECT id, created_at, timeline FROM operations"):
            for offset, status in json.loads(timeline):
                moment = created_at / 1e6 + offset
                if since <= moment <= until:
                    found[name, status] = moment
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--projects", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        source = path / "ansible_collections" / "clouddb" / "control"
        source.parent.mkdir(parents=True)
        source.symlink_to(ROOT)
        (path / "seed.yml").write_text(
            json.dumps({"generate": {"projects": options.projects, "operations_per_project": 20}})
        )
        files = ["--database", "db", "--seed", "seed.yml", "--api-key-file", "key", "--ready-file", "ready"]
        command = [
            sys.executable,
            "-m",
            "clouddb_sandbox",
            *(str(path / part) if not part.startswith("--") else part for part in files),
        ]
        with subprocess.Popen(command, cwd=ROOT / "roles" / "sandbox" / "files", stderr=subprocess.DEVNULL) as sandbox:
            try:
                while not (path / "ready").exists():
                    time.sleep(0.1)
                measure(path, source, options.seconds)
            finally:
                sandbox.terminate()


def measure(path: Path, source: Path, seconds: float) -> None:
    base_url, key = json.loads((path / "ready").read_text())["base_url"], (path / "key").read_text().strip()
    plugin = runpy.run_path(str(source / "extensions/eda/plugins/event_source/operations.py"))
    recorder = Recorder()
    times: dict[str, float] = {}

    async def follow() -> None:
        args = {"base_url": base_url, "api_key": key, "state_file": str(path / "state.json")}
        running = asyncio.create_task(plugin["main"](recorder, args))
        # The first polls are over; earlier changes cause no events.
        await asyncio.sleep(30)
        times["since"] = time.time()
        times["sent before"] = sent()
        worker = threading.Thread(target=start_work, args=(base_url, key, seconds))
        worker.start()
        await asyncio.sleep(seconds)
        times["until"], times["sent"] = time.time(), sent()
        await asyncio.sleep(MAX_SECONDS + 40)
        # What changed during the last round need not have been seen.
        times["end"] = time.time() - 35
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    def sent() -> int:
        log = requests.get(
            base_url.replace("/api/v2", "/_sandbox/requests"), headers={"Authorization": f"Bearer {key}"}, timeout=30
        ).json()
        return sum(entry["user_agent"].startswith("clouddb.control/") for entry in log["requests"])

    asyncio.run(follow())
    expected = changes(path / "db", times["since"], times["until"])
    # The last status of each of their operations, which may have come after the time.
    last = changes(path / "db", times["since"], times["end"])
    latest = {name: status for (name, status), _moment in sorted(last.items(), key=lambda item: item[1])}
    seen_statuses = {
        (event["clouddb"]["operation"]["id"], event["clouddb"]["operation"]["status"])
        for _moment, event in recorder.events
    }
    operations = {name for name, _status in expected}
    delays_of: dict[tuple[str, str], list[float]] = {}
    for moment, event in recorder.events:
        operation = event["clouddb"]["operation"]
        updated = datetime.fromisoformat(operation["updated_at"].replace("Z", "+00:00")).timestamp()
        if (operation["id"], operation["status"]) in expected:
            delays_of.setdefault((operation["id"], operation["status"]), []).append(moment - updated)
    delays = sorted(delay for each in delays_of.values() for delay in each)
    skipped = [change for change in expected if change not in delays_of]
    print(f"requests sent: {times['sent'] - times['sent before']:.0f} in {seconds:.0f} s")
    print(
        f"changes that happened: {len(expected)} of {len(operations)} operations; events: {len(delays)}, of them repeated: {len(delays) - len(delays_of)}"
    )
    print(f"without an event because a later change came before the next poll: {len(skipped)}")
    print(
        f"operations whose last status was not emitted (lost): {sum((name, latest[name]) not in seen_statuses for name in operations)}"
    )
    print(
        f"delay from change to event: median {statistics.median(delays):.1f} s, 95 % {delays[int(len(delays) * 0.95)]:.1f} s, worst {delays[-1]:.1f} s"
    )


if __name__ == "__main__":
    main()
