# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a task in processes of its own, each against a network or a service that never lets a request end.

C(run) starts C(main) in a network namespace. The time of a process begins when the libraries are loaded, and ends when
the process has exited. The time in which it was ready to run, and other processes had the processors, does not count.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import requests

from ansible_collections.clouddb.control.plugins.modules import operation_wait, project_info
from ansible_collections.clouddb.control.tests.unit.support.module_main import HasMain, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import SILENCE, TUNNEL, Reply, reply, send

ROOT = next(str(folder.parent) for folder in Path(__file__).absolute().parents if folder.name == "ansible_collections")
# Ansible's importer has to be there before the first import of a collection.
PROGRAM = f"from ansible.plugins.loader import init_plugin_loader as init; init(); from {__name__} import main; main()"
# Also without being root, where the system allows it.
NAMESPACES = ("unshare", "--user", "--map-root-user", "--net", "--mount")

API_KEY = "key-of-no-account-0123456789abcdef"
API_TIMEOUT = 2.0
WAIT_TIMEOUT = 4.0
SECONDS_BETWEEN_STARTS = 0.1
SECONDS_BETWEEN_CHECKS = 0.01
# A process that hangs is killed after this time.
MAX_SECONDS = 60.0

UNUSED_ADDRESSES = [f"127.0.0.{number}" for number in range(11, 19)]
DROPPING_HOST = "dropping.example.com"
SILENT_HOST = "silent.example.com"
FILES = {
    "hosts": "".join(f"{address} {DROPPING_HOST}\n" for address in UNUSED_ADDRESSES),
    "host.conf": "multi on\n",
    "nsswitch.conf": "hosts: files dns\n",
    "resolv.conf": "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n",
}


def are_namespaces_permitted() -> bool:
    """Whether this user may create the namespaces that the tests need."""
    try:
        command = [*NAMESPACES, "cat", "/proc/self/schedstat"]
        return not subprocess.run(command, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


class Measured(NamedTuple):
    """How long a process took, in seconds, and the message that its task ended with."""

    case: str
    seconds: float
    message: str


def run(name: str, folder: Path) -> list[Measured]:
    """Run a task of TASKS against every service and network."""
    mounts = []
    for file, content in FILES.items():
        (folder / file).write_text(content, encoding="utf-8")
        mounts.append(f"mount --bind {file} /etc/{file}")
    command = f'{" && ".join(mounts)} && exec "$0" "$@"'
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, *sys.path]), "ANSIBLE_COLLECTIONS_PATH": ROOT}
    printed = subprocess.run(
        [*NAMESPACES, "sh", "-c", command, sys.executable, "-c", PROGRAM, name],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return [Measured(*fields) for fields in json.loads(printed.splitlines()[-1])]


# Services


def serve(listener: socket.socket, replies: list[Reply]) -> None:
    """Send every client all replies: each after the client's next bytes, whatever they are."""
    while True:
        with suppress(OSError), listener.accept()[0] as connection:
            for each in replies:
                connection.recv(2**16)
                send(connection, each, threading.Event())


def dripping(start: bytes, endless: bytes = b" ", pause: float = 0.05) -> Reply:
    return Reply(start, hangs=True, endless=endless, pause=pause)


INVALID_KEY = "401"
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
TLS_RECORD = b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb"  # the beginning of a long ServerHello

SERVICES = {
    INVALID_KEY: [reply(status=401)],
    "silence": [SILENCE],
    "body byte by byte": [dripping(HEADERS + b"Content-Length: 1000000\r\n\r\n[")],
    "103 without end": [dripping(b"", INTERIM * 100, 0.001)],
    "TLS handshake byte by byte": [dripping(TLS_RECORD, b"\0")],
    "silent proxy": [SILENCE],
    "proxy: headers without end": [dripping(b"HTTP/1.1 200 OK\r\n", b"X-Filler: x\r\n")],
    "proxy: TLS handshake byte by byte": [TUNNEL, dripping(TLS_RECORD, b"\0")],
}


def dropping_port() -> int:
    """A port at which every unused address drops packets: its queue of connections is full."""
    port = 443
    for address in UNUSED_ADDRESSES:
        open_sockets.append(socket.create_server((address, port), backlog=0))
        for _connection in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((address, port))
            open_sockets.append(filler)
    return port


open_sockets: list[socket.socket] = []


class Case(NamedTuple):
    """Where a task sends its requests: directly or by a proxy."""

    base_url: str
    proxy: str = ""

    @property
    def connection(self) -> dict[str, Any]:
        """The connection options of the task."""
        return {"base_url": self.base_url, "api_key": API_KEY, "api_timeout": API_TIMEOUT, "api_retries": 0}


def start_services() -> tuple[int, dict[str, Case]]:
    """Start the services: their process, and the cases by name."""
    port = dropping_port()
    cases = {
        "8 addresses that drop packets": Case(f"https://{DROPPING_HOST}:{port}"),
        "proxy with 8 addresses that drop packets": Case("https://x.example.com", f"http://{DROPPING_HOST}:{port}"),
        "DNS server that never responds": Case(f"https://{SILENT_HOST}"),
        "proxy whose DNS server never responds": Case("https://x.example.com", f"http://{SILENT_HOST}:3128"),
    }
    dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    dns.bind(("127.0.0.1", 53))
    open_sockets.append(dns)
    listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in SERVICES}
    for name, listener in listeners.items():
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        if "proxy" in name:
            cases[name] = Case("https://x.example.com", f"http://{address}")
        else:
            cases[name] = Case(f"{'https' if 'TLS' in name else 'http'}://{address}/api/v2")
    child = os.fork()
    if not child:
        for name, replies in SERVICES.items():
            threading.Thread(target=serve, args=[listeners[name], replies], daemon=True).start()
        signal.pause()
    return child, cases


def bring_loopback_up() -> None:
    """A new network namespace has a loopback device that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        siocsifflags, iff_up = 0x8914, 1
        fcntl.ioctl(sock, siocsifflags, struct.pack("16sH14x", b"lo", iff_up))


class Task(NamedTuple):
    """A task with these options besides those of its connection; C(seconds) is its deadline."""

    module: HasMain
    options: dict[str, Any]
    seconds: float

    def run(self, connection: dict[str, Any]) -> str:
        """The message with which the task fails."""
        return str(run_main(self.module, {**connection, **self.options}).result["msg"])


# A single request may take longer than the wait.
WAIT = {"api_timeout": 30, "api_retries": 5, "project_id": "shop", "timeout": WAIT_TIMEOUT}
TASKS = {
    "project_info": Task(project_info, {}, API_TIMEOUT),
    "operation_wait": Task(operation_wait, WAIT, WAIT_TIMEOUT),
}


# Processes


def run_cases(task: Task) -> list[Measured]:
    """Run the task in every case at once, each in a process of its own."""
    bring_loopback_up()
    services, cases = start_services()
    # Some libraries are loaded at the first request, and files at the first TLS handshake and name lookup.
    task.run(cases.pop(INVALID_KEY).connection)
    ssl.create_default_context(cafile=requests.certs.where())
    socket.getaddrinfo(DROPPING_HOST, None)
    # A process that exits would collect, and so copy, all that it shares with this one.
    gc.freeze()
    started: dict[int, tuple[str, float]] = {}
    results = []
    next_start = 0.0
    # The first ones may end before the last ones begin.
    while cases or started:
        if cases and time.monotonic() >= next_start:
            name, case = cases.popitem()
            begin = time.monotonic()
            child = os.fork()
            if not child:
                run_case(name, case, task)
            started[child] = name, begin
            # Otherwise all of them would reach their deadlines at the same moment.
            next_start = begin + SECONDS_BETWEEN_STARTS
        elif ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            results.append(measured(ended, *started.pop(ended.si_pid)))
        else:
            time.sleep(SECONDS_BETWEEN_CHECKS)
    os.kill(services, signal.SIGKILL)
    return results


def measured(ended: os.waitid_result, case: str, begin: float) -> Measured:
    """What the process of a case, which has just ended, took; the process is removed."""
    seconds = time.monotonic() - begin - seconds_without_processor(ended.si_pid)
    os.waitpid(ended.si_pid, 0)
    status = ended.si_status
    return Measured(case, seconds, f"status {status}" if status else Path(f"{case}.txt").read_text(encoding="utf-8"))


def seconds_without_processor(process: int) -> float:
    """How long the first thread of a process was ready to run, and other processes did."""
    return int(Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9


def run_case(name: str, case: Case, task: Task) -> None:
    """Run the task and exit as a module does, including Python's finalization."""
    signal.alarm(int(MAX_SECONDS))
    if case.proxy:
        os.environ["HTTPS_PROXY"] = case.proxy
    message = task.run(case.connection)
    Path(f"{name}.txt").write_text(message, encoding="utf-8")
    sys.exit()


def main() -> None:
    """Run the task named on the command line; prints the list of Measured as JSON."""
    print(json.dumps(run_cases(TASKS[sys.argv[1]])))
