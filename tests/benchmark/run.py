# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures tasks against C(ansible.builtin.uri) in the same run: ``run.py --page PAGE`` in a workspace (tests/tools/workspace.py).

Prints a table, and writes it to the page between its comments C(begin benchmark) and C(end benchmark). Fewer rounds,
as in ``make benchmark ROUNDS=1``, take minutes instead of an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import requests
from ansible import __version__ as ansible_version

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "support"))

from sandbox import API_KEY, Sandbox, running_sandbox

# ROUNDS=1 is enough to see that it works.
ROUNDS = int(os.environ.get("ROUNDS", "30"))
LONG_ROUNDS = min(ROUNDS, 3)
ITEMS = 50
HOSTS = 20
FORKS = 10
FLEET = 200
FLEET_FORKS = 20
RATE = 40
PROJECTS = 1000
LARGE = 30_000
PAGE_OF_PROJECTS = 400
KEYS = 60_000
# Operations then take no noticeable time, so that tasks are measured without waiting.
CLOCK_SPEED = 1000

Task = dict[str, Any]


class Row(NamedTuple):
    """What was measured, its median, what it is compared with, and the median of that."""

    what: str
    seconds: float
    reference: str
    reference_seconds: float

    def cells(self) -> tuple[str, ...]:
        ratio = self.seconds / self.reference_seconds
        return (
            self.what,
            duration(self.seconds),
            self.reference,
            duration(self.reference_seconds),
            f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}",
        )


def duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def task(module: str, **options: Any) -> Task:
    return {f"clouddb.control.{module}": options}


def uri(path: str, **options: Any) -> Task:
    headers = {"Authorization": "Bearer {{ lookup('env', 'CLOUDDB_API_KEY') }}"}
    url = "{{ lookup('env', 'CLOUDDB_BASE_URL') }}" + path
    return {"ansible.builtin.uri": {"url": url, "headers": headers, "timeout": 300, **options}}


PING: Task = {"ansible.builtin.ping": {}}
DEBUG: Task = {"ansible.builtin.debug": {}}


# What a pull request needs.
SHOP = {"project": "shop"}
ON_BRANCH = {**SHOP, "branch": "{{ branch_name }}"}
PULL_REQUEST = [
    task("branch", **SHOP, name="{{ branch_name }}"),
    task("database_user", **ON_BRANCH, name="tests"),
    task("database", **ON_BRANCH, name="tests", owner="tests"),
    task("connection_info", **ON_BRANCH, database="tests", dest="{{ uri_file }}"),
]


def run_tasks(service: Sandbox, tasks: list[Task], *arguments: str, **variables: Any) -> list[float]:
    """The seconds that each task takes on each host, by Ansible's own callback plugin."""
    with tempfile.TemporaryDirectory() as folder:
        playbook = Path(folder) / "playbook.json"
        hosts = "all" if arguments else "localhost"
        playbook.write_text(json.dumps([{"hosts": hosts, "gather_facts": False, "tasks": tasks}]))
        env = {
            **os.environ,
            "ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.junit",
            "JUNIT_OUTPUT_DIR": folder,
            "CLOUDDB_API_KEY": API_KEY,
            "CLOUDDB_BASE_URL": service.base_url,
        }
        program = Path(sys.executable).with_name("ansible-playbook")
        extra_vars = json.dumps({"ansible_python_interpreter": sys.executable, **variables})
        command = [sys.executable, str(program), str(playbook), "--extra-vars", extra_vars, *arguments]
        done = subprocess.run(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            sys.exit(done.stdout)
        [report] = Path(folder).glob("*.xml")
        return [float(case.get("time", 0)) for case in ET.parse(report).iter("testcase")]


def durations(service: Sandbox, tasks: list[Task], rounds: int) -> list[float]:
    """The median seconds of each task. They run in turn, so that load on the machine affects all of them alike."""
    # The first round fills Ansible's caches.
    repeated = [{**each, "no_log": True} for _round in range(rounds + 1) for each in tasks]
    seconds = run_tasks(service, repeated)[len(tasks) :]
    return [median(seconds[number :: len(tasks)]) for number in range(len(tasks))]


def on_hosts(service: Sandbox, task: Task, number: int = HOSTS, forks: int = FORKS, rounds: int = LONG_ROUNDS) -> float:
    """The median seconds until the task has run on this number of hosts, which are this machine."""
    hosts = "".join(f"host{each}," for each in range(number))
    arguments = ("--connection=local", f"--forks={forks}", f"--inventory={hosts}")
    return median(max(run_tasks(service, [task], *arguments)) for _round in range(rounds))


def run_inventory(service: Sandbox, source: Path, to: Path) -> tuple[float, float]:
    """The seconds and the megabytes that C(ansible-inventory) takes to write the hosts of a source to a file."""
    program = Path(sys.executable).with_name("ansible-inventory")
    command = [str(program), "--inventory", str(source), "--list", "--output", str(to)]
    env = {**os.environ, "CLOUDDB_API_KEY": API_KEY, "CLOUDDB_BASE_URL": service.base_url}
    env["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"] = "true"
    started = time.monotonic()
    child = os.posix_spawn(sys.executable, [sys.executable, *command], env)
    _child, status, usage = os.wait4(child, 0)
    if status:
        sys.exit(f"{command} ended with status {status}")
    return time.monotonic() - started, usage.ru_maxrss / 1024


def pull_request(service: Sandbox, folder: Path, number: int) -> float:
    """The seconds of C(ansible-playbook) for the branch, the user, the database and the connection string of a pull request."""
    started = time.monotonic()
    run_tasks(service, PULL_REQUEST, branch_name=f"pr-{number}", uri_file=f"{folder}/pr-{number}.url")
    return time.monotonic() - started


def bare_loop(service: Sandbox, number: int) -> float:
    """The seconds of the same requests in Python, with five polls per second until each operation has finished."""
    started = time.monotonic()
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {API_KEY}"

        def send(method: str, path: str, **options: Any) -> Any:
            response = session.request(method, f"{service.base_url}/{path}", timeout=30, **options)
            response.raise_for_status()
            body = response.json()
            for operation in body.get("operations", []):
                path = f"projects/{operation['project_id']}/operations/{operation['id']}"
                while send("GET", path)["operation"]["status"] != "finished":
                    time.sleep(0.2)
            return body

        [project] = send("GET", "projects")["projects"]
        branches = f"projects/{project['id']}/branches"
        branch = send(
            "POST", branches, json={"branch": {"name": f"loop-{number}"}, "endpoints": [{"type": "read_write"}]}
        )
        branch_id = branch["branch"]["id"]
        send("POST", f"{branches}/{branch_id}/roles", json={"role": {"name": "tests"}})
        database = {"name": "tests", "owner_name": "tests"}
        send("POST", f"{branches}/{branch_id}/databases", json={"database": database})
        query = {"branch_id": branch_id, "database_name": "tests", "role_name": "tests"}
        send("GET", f"projects/{project['id']}/connection_uri", params=query)
    return time.monotonic() - started


def four_debug(service: Sandbox) -> float:
    """The seconds of C(ansible-playbook) for as many C(debug) tasks as a pull request needs."""
    started = time.monotonic()
    run_tasks(service, [DEBUG] * len(PULL_REQUEST))
    return time.monotonic() - started


def fleet() -> Iterator[Row]:
    """The rows of a task on FLEET hosts that share an account with the published rate limit."""
    with tempfile.TemporaryDirectory() as folder, running_sandbox(Path(folder), projects=[{"name": "shop"}]) as service:
        [project] = service.api("GET", "/projects")["projects"]
        service.control("PUT", "/rate_limit", {"per_minute": 60 * RATE, "burst": RATE})
        path = f"/projects/{project['id']}"
        ours = on_hosts(service, task("project_info", project_id=project["id"]), FLEET, FLEET_FORKS, 1)
        what = f"One task on {FLEET} hosts, {FLEET_FORKS} at a time, {RATE} requests per second: ``project_info``"
        # It does not repeat requests, and a 429 would end it.
        one_uri = uri(path, status_code=[200, 429])
        for reference, other in (("uri", one_uri), ("debug", DEBUG)):
            seconds = on_hosts(service, other, FLEET, FLEET_FORKS, 1)
            yield Row(what, ours, f"one ``{reference}`` on these hosts", seconds)


def pull_requests() -> Iterator[Row]:
    """The rows of the tasks of a pull request, with the start of Ansible."""
    with tempfile.TemporaryDirectory() as folder, running_sandbox(Path(folder), projects=[{"name": "shop"}]) as service:
        service.control("PUT", "/clock", {"speed": 1})
        numbers = range(LONG_ROUNDS)
        loop, first, second = zip(
            *((bare_loop(service, n), *(pull_request(service, Path(folder), n) for _run in range(2))) for n in numbers)
        )
        what = "A branch, a user, a database and the connection string of a pull request, with the start of Ansible"
        reference = "the same requests and polls in a Python loop"
        yield Row(what, median(first), reference, median(loop))
        yield Row("The same again, when nothing has to change", median(second), reference, median(loop))
        unchanged, debug = zip(*((pull_request(service, Path(folder), 0), four_debug(service)) for _round in numbers))
        what = "Four tasks that change nothing, with the start of Ansible"
        yield Row(what, median(unchanged), "four ``debug`` tasks", median(debug))


def single_tasks() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, running_sandbox(Path(folder), projects=[{"name": "shop"}]) as service:
        service.control("PUT", "/clock", {"speed": CLOCK_SPEED})
        ordinary = {**task("project_info"), "vars": {"clouddb_fork": False}}
        tasks = [PING, uri("/projects"), task("project_info"), ordinary]
        ping, one_uri, one, one_ordinary = durations(service, tasks, ROUNDS)
        yield Row("One task: ``project_info``", one, "one ``uri``", one_uri)
        yield Row("One task: ``project_info``", one, "one ``ping``, which sends no request", ping)
        what = "One task that does not run at once: ``project_info``"
        yield Row(what, one_ordinary, "one ``uri``", one_uri)
        yield Row(what, one_ordinary, "one ``ping``", ping)
        items = {"loop": list(range(ITEMS))}
        loop_uri, loop_one = durations(
            service, [{**uri("/projects"), **items}, {**task("project_info"), **items}], LONG_ROUNDS
        )
        yield Row(f"A loop of {ITEMS} items: ``project_info``", loop_one, "a loop of ``uri``", loop_uri)
        hosts_uri, hosts_one = on_hosts(service, uri("/projects")), on_hosts(service, task("project_info"))
        what = f"One task on {HOSTS} hosts, {FORKS} at a time: ``project_info``"
        yield Row(what, hosts_one, "one ``uri`` on these hosts", hosts_uri)


def lists() -> Iterator[Row]:
    seed = {
        "generate": {"projects": PROJECTS, "operations_per_project": 20},
        "api_keys": [{"name": f"deploy-{number}"} for number in range(KEYS)],
    }
    with tempfile.TemporaryDirectory() as folder, running_sandbox(Path(folder), **seed) as service:
        tasks = [task("operation_info", page_size=1000), uri("/projects"), task("api_key_info"), uri("/api_keys")]
        operations, one_uri, keys, keys_uri = durations(service, tasks, LONG_ROUNDS)
    what = f"The operations of {PROJECTS:,} projects: ``operation_info``"
    yield Row(what, operations, f"{PROJECTS:,} ``uri``, one for each project", PROJECTS * one_uri)
    yield Row(f"A list of {KEYS:,} keys: ``api_key_info``", keys, "one ``uri``", keys_uri)


def large_account() -> Iterator[Row]:
    seed = {"generate": {"projects": LARGE, "operations_per_project": 0}}
    with tempfile.TemporaryDirectory() as folder, running_sandbox(Path(folder), **seed) as service:
        last = service.api("GET", f"/projects?search=project-{LARGE - 1:04d}")["projects"][0]
        pages = -(-LARGE // PAGE_OF_PROJECTS)
        tasks = [task("project_info", fields=["id"]), uri(f"/projects?limit={PAGE_OF_PROJECTS}")]
        tasks += [task("project_info", project_id=last["id"]), uri(f"/projects/{last['id']}")]
        tasks += [task("project_info", name=last["name"]), uri(f"/projects?search={last['name']}")]
        listed, page, by_id, uri_by_id, by_name, uri_by_name = durations(service, tasks, LONG_ROUNDS)
        what = f"A list of {LARGE:,} projects: ``project_info``"
        yield Row(what, listed, f"{pages} ``uri``, one a page", pages * page)
        yield Row(f"One of {LARGE:,} projects by its id: ``project_info``", by_id, "one ``uri``", uri_by_id)
        yield Row(f"One of {LARGE:,} projects by its name: ``project_info``", by_name, "one ``uri``", uri_by_name)
        source, static = Path(folder) / "account.clouddb.yml", Path(folder) / "static.json"
        source.write_text("plugin: clouddb.control.projects\n")
        seconds, memory = run_inventory(service, source, static)
        hosts = json.loads(static.read_text())["_meta"]["hostvars"]
        static.write_text(json.dumps({"all": {"hosts": hosts}}))
        static_seconds, static_memory = run_inventory(service, static, Path(folder) / "output.json")
        what = f"The inventory of {LARGE:,} projects ({memory:.0f} MB): ``ansible-inventory``"
        yield Row(what, seconds, f"a static file of these hosts ({static_memory:.0f} MB)", static_seconds)


GROUPS = {each.__name__: each for each in (pull_requests, single_tasks, fleet, lists, large_account)}


def as_rst(rows: list[tuple[str, ...]], load: float) -> str:
    """A table whose first row is the header, and whose caption says whether the machine was busy."""
    busy = f", busy with other work: load {load:.0f}" if load > 1 else ""
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, ansible-core {ansible_version}{busy}"
    lines = [
        f".. list-table:: Medians of {ROUNDS} rounds, or {LONG_ROUNDS} of the long ones ({machine})",
        "   :header-rows: 1",
        "",
    ]
    for first, *others in rows:
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table and write it to the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=Path, required=True, help="the file of the page Performance")
    parser.add_argument("--only", choices=GROUPS, help="measure these rows only, and leave the page as it is")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 1:
        print(f"The machine is busy (load {load:.1f}). Only the ratios will be meaningful.", flush=True)
    rows: list[tuple[str, ...]] = [("Measured", "Time", "Compared with", "Time of that", "Ratio")]
    for group in [GROUPS[options.only]] if options.only else GROUPS.values():
        for row in group():
            print(" | ".join(row.cells()), flush=True)
            rows.append(row.cells())
    if not options.only:
        write(options.page, as_rst(rows, load))


def write(page: Path, table: str) -> None:
    block = f".. begin benchmark\n\n{table}\n\n.. end benchmark"
    text = page.read_text(encoding="utf-8")
    page.write_text(
        re.sub(r"\.\. begin benchmark\n.*\.\. end benchmark", lambda _match: block, text, flags=re.DOTALL),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
