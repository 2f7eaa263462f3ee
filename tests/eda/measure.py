# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the event source: ``measure.py [--projects 100] [--seconds 300]``; needs what requirements.txt has.

A sandbox in a process of its own, on its own clock at normal speed, with the public service's rate limit. One operation is
started per second, nine of ten in one percent of the projects, the others in any other project; they take up to 40 seconds.
The source is run as ansible-rulebook runs it. What has happened is read from the sandbox's database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
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
# As in the event source's schedule, which can be imported only in the process that runs it.
BUSY_SECONDS = 300.0


class Recorder:
    """The events, each with its time of arrival."""

    def __init__(self) -> None:
        self.events: list[tuple[float, dict[str, Any]]] = []

    async def put(self, event: dict[str, Any], /) -> None:
        self.events.append((time.time(), event))


def all_projects(session: requests.Session, base_url: str) -> list[str]:
    """The ids of all projects."""
    ids: list[str] = []
    cursor = None
    while page := session.get(f"{base_url}/projects", params={"limit": 400, "cursor": cursor}, timeout=30).json():
        if not page["projects"]:
            break
        ids += [project["id"] for project in page["projects"]]
        cursor = page["pagination"]["cursor"]
    return ids


def start_work(session: requests.Session, base_url: str, busy: list[str], idle: list[str], seconds: float) -> None:
    """Start an operation a second, in random projects, for C(seconds)."""
    chance = random.Random(1)
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        project = chance.choice(busy if chance.random() < 0.9 else idle)
        ended = chance.uniform(2, MAX_SECONDS)
        timeline = [
            [0, "scheduling"],
            [round(chance.uniform(0.5, 1.9), 3), "running"],
            [ended, "failed" if chance.random() < 0.1 else "finished"],
        ]
        plan = {"action": "create_branch", "project_id": project, "timeline": timeline}
        session.post(base_url.replace("/api/v2", "/_sandbox/operation_plans"), json=plan, timeout=30)
        # A project with unfinished operations refuses it with 423.
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
        rows = connection.execute(
            "SELECT id, created_at, timeline FROM operations WHERE created_at > ?", ((since - MAX_SECONDS) * 1e6,)
        )
        for name, created_at, timeline in rows:
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
        # Without computes, so that the platform starts no operations by itself.
        seed = {"projects": [{"compute": False, "generate_operations": 20}] * options.projects}
        (path / "seed.yml").write_text(json.dumps(seed))
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

    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {key}"
    control = base_url.replace("/api/v2", "/_sandbox")
    projects = all_projects(session, base_url)
    random.Random(1).shuffle(projects)
    number_of_busy = max(1, len(projects) // 100)
    busy, idle = projects[:number_of_busy], projects[number_of_busy:]
    session.put(f"{control}/rate_limit", json={}, timeout=30).raise_for_status()

    async def follow() -> None:
        args = {"base_url": base_url, "api_key": key, "state_file": str(path / "state.json"), "page_size": 400}
        running = asyncio.create_task(plugin["main"](recorder, args))
        # The projects are listed; earlier changes cause no events.
        await asyncio.sleep(30)
        session.delete(f"{control}/requests", timeout=30)
        times["since"] = time.time()
        started = resource.getrusage(resource.RUSAGE_SELF)
        worker = threading.Thread(target=start_work, args=(session, base_url, busy, idle, seconds))
        worker.start()
        await asyncio.sleep(seconds)
        ended = resource.getrusage(resource.RUSAGE_SELF)
        times["until"], times["events"] = time.time(), len(recorder.events)
        times["cpu"] = ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime
        times["memory"] = ended.ru_maxrss / 1024
        log = await asyncio.to_thread(request_log)
        times["sent"] = sum(entry["user_agent"].startswith("clouddb.control/") for entry in log)
        times["refused"] = sum(entry["status"] == 429 for entry in log)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        # The rest is emitted after a restart, faster than the rate limit allows.
        await asyncio.sleep(MAX_SECONDS)
        session.delete(f"{control}/rate_limit", timeout=30)
        running = asyncio.create_task(plugin["main"](recorder, {**args, "requests_per_minute": 60_000}))
        end = time.monotonic() + 600
        while lost() and time.monotonic() < end:
            await asyncio.sleep(5)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    def request_log() -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = session.get(f"{control}/requests", timeout=30).json()["requests"]
        return entries

    def lost() -> int:
        """The number of operations whose last status was not emitted."""
        latest: dict[str, tuple[float, str]] = {}
        for (name, status), moment in changes(path / "db", times["since"], time.time()).items():
            latest[name] = max(latest.get(name, (0.0, "")), (moment, status))
        emitted = {
            (each["id"], each["status"]) for each in (event["clouddb"]["operation"] for _at, event in recorder.events)
        }
        return sum((name, status) not in emitted for name, (_moment, status) in latest.items())

    asyncio.run(follow())
    expected = changes(path / "db", times["since"], times["until"])
    delays: dict[str, list[float]] = {"busy": [], "idle": []}
    uuids = [event["meta"]["uuid"] for _moment, event in recorder.events]
    # Of each project, when operations have changed, and when the events were emitted.
    emitted: dict[str, list[tuple[float, float]]] = {}
    for moment, event in recorder.events[: int(times["events"])]:
        operation = event["clouddb"]["operation"]
        updated = datetime.fromisoformat(operation["updated_at"].replace("Z", "+00:00")).timestamp()
        of_project = emitted.setdefault(operation["project_id"], [])
        if (operation["id"], operation["status"]) in expected:
            # A project is busy if an operation has changed in the BUSY_SECONDS before, and its event was emitted.
            is_busy = any(changed >= updated - BUSY_SECONDS and reported <= updated for changed, reported in of_project)
            delays["busy" if is_busy else "idle"].append(moment - updated)
        of_project.append((updated, moment))
    print(f"{len(projects)} projects, load of the machine {os.getloadavg()}")
    print(f"requests sent: {times['sent'] * 60 / seconds:.0f} per minute; 429 responses: {times['refused']:.0f}")
    print(f"processor time: {times['cpu'] * 60 / seconds:.1f} s per minute; peak memory: {times['memory']:.0f} MiB")
    operations = {name for name, _status in expected}
    print(
        f"changes: {len(expected)} of {len(operations)} operations; events: {len(uuids)}, repeated: {len(uuids) - len(set(uuids))}, "
        f"operations whose last status was not emitted (lost): {lost()}"
    )
    for kind, found in delays.items():
        if found:
            found.sort()
            print(
                f"delay in {kind} projects: median {statistics.median(found):.1f} s, 95 % {found[int(len(found) * 0.95)]:.1f} s, "
                f"worst {found[-1]:.1f} s ({len(found)} events)"
            )


if __name__ == "__main__":
    main()
