# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deadlines hold in networks where packets are dropped, names are not found and responses never end.

Linux lets tests build such networks in namespaces: the test starts C(main) in one. The time of a process begins when the libraries
are loaded, and ends when it has exited. The time in which it was ready to run, and others had the processors, does not count.
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
from typing import Any

import pytest
import requests

from ansible_collections.clouddb.control.plugins.modules import operation_wait, project_info
from ansible_collections.clouddb.control.tests.unit.support.module_main import HasMain, run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import SILENCE, TUNNEL, Reply, reply, send

ROOT = next(str(folder.parent) for folder in Path(__file__).absolute().parents if folder.name == "ansible_collections")
# Also without being root, where the system allows it.
NAMESPACES = ("unshare", "--user", "--map-root-user", "--net", "--mount")

API_TIMEOUT = 2.0
WAIT_TIMEOUT = 4.0
# What the collection promises: the deadline, and no more than this.
SECONDS_AFTER_DEADLINE = 2.0
# Otherwise all processes would reach their deadlines at the same moment.
SECONDS_BETWEEN_STARTS = 0.1
# The options of a task besides those of its connection, and its deadline. A single request may take longer than the wait.
WAIT = {"api_timeout": 30, "api_retries": 5, "project_id": "shop", "timeout": WAIT_TIMEOUT}
TASKS: dict[str, tuple[HasMain, dict[str, Any], float]] = {
    "project_info": (project_info, {}, API_TIMEOUT),
    "operation_wait": (operation_wait, WAIT, WAIT_TIMEOUT),
}

UNUSED_ADDRESSES = [f"127.0.0.{number}" for number in range(11, 19)]
DROPPING_HOST = "dropping.example.com"
SILENT_HOST = "silent.example.com"
FILES = {
    "hosts": "".join(f"{address} {DROPPING_HOST}\n" for address in UNUSED_ADDRESSES),
    "host.conf": "multi on\n",
    "nsswitch.conf": "hosts: files dns\n",
    "resolv.conf": "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n",
}


def dripping(start: bytes, endless: bytes = b" ", pause: float = 0.05) -> Reply:
    return Reply(start, hangs=True, endless=endless, pause=pause)


INVALID_KEY = "401"
HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
TLS_RECORD = b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb"  # the beginning of a long ServerHello
# Every client gets all replies: each after the client's next bytes, whatever they are.
SERVICES = {
    INVALID_KEY: [reply(status=401)],
    "silence": [SILENCE],
    "body byte by byte": [dripping(HEADERS + b"Content-Length: 1000000\r\n\r\n[")],
    "103 without end": [dripping(b"", INTERIM * 10, 0.01)],
    "TLS handshake byte by byte": [dripping(TLS_RECORD, b"\0")],
    "silent proxy": [SILENCE],
    "proxy: headers without end": [dripping(b"HTTP/1.1 200 OK\r\n", b"X-Filler: x\r\n")],
    "proxy: TLS handshake byte by byte": [TUNNEL, dripping(TLS_RECORD, b"\0")],
}
open_sockets: list[socket.socket] = []


def are_namespaces_permitted() -> bool:
    with suppress(FileNotFoundError):
        command = [*NAMESPACES, "cat", "/proc/self/schedstat"]
        return not subprocess.run(command, capture_output=True, check=False).returncode
    return False


@pytest.mark.skipif(not are_namespaces_permitted(), reason="only where namespaces are permitted")
@pytest.mark.parametrize("task", ["project_info", pytest.param("operation_wait", marks=pytest.mark.soak)])
def test_a_process_ends_by_its_deadline(task: str, tmp_path: Path) -> None:
    for file, content in FILES.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    command = " && ".join([*(f"mount --bind {file} /etc/{file}" for file in FILES), 'exec "$0" "$@"'])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, *sys.path])}
    python = [sys.executable, "-c", f"from {__name__} import main; main()"]
    program = [*NAMESPACES, "sh", "-c", command, *python, task]
    ran = subprocess.run(program, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    processes = json.loads(ran.stdout.splitlines()[-1])
    for case, seconds, message in processes:
        print(f"{seconds:5.2f} s  {case}: {message}")
    assert len(processes) > 10
    limit = TASKS[task][2] + SECONDS_AFTER_DEADLINE
    assert [case for case, seconds, message in processes if seconds > limit or not message] == []


def main() -> None:
    """Run the task named on the command line in every case at once, each in a process of its own.

    Prints the case, the seconds and the message of each process as JSON.
    """
    # A new network namespace has a loopback device that is down.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        siocsifflags, iff_up = 0x8914, 1
        fcntl.ioctl(sock, siocsifflags, struct.pack("16sH14x", b"lo", iff_up))
    services, cases = start_services()
    # Some libraries are loaded at the first request, and files at the first TLS handshake and name lookup.
    run_task(*cases.pop(INVALID_KEY))
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
            if not (child := os.fork()):
                # It exits as a module does, including Python's finalization, and is killed if it hangs.
                signal.alarm(60)
                Path(f"{name}.txt").write_text(run_task(*case), encoding="utf-8")
                sys.exit()
            started[child] = name, begin
            next_start = begin + SECONDS_BETWEEN_STARTS
        elif ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            name, begin = started.pop(ended.si_pid)
            waited = int(Path(f"/proc/{ended.si_pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
            seconds = time.monotonic() - begin - waited
            os.waitpid(ended.si_pid, 0)
            status = ended.si_status
            message = f"status {status}" if status else Path(f"{name}.txt").read_text(encoding="utf-8")
            results.append((name, seconds, message))
        else:
            time.sleep(0.01)
    os.kill(services, signal.SIGKILL)
    print(json.dumps(results))


def run_task(base_url: str, proxy: str) -> str:
    """The message with which the task fails."""
    if proxy:
        os.environ["HTTPS_PROXY"] = proxy
    module, options, _deadline = TASKS[sys.argv[1]]
    connection = {"base_url": base_url, "api_key": "key-of-no-account-0123456789abcdef", "api_timeout": API_TIMEOUT}
    return str(run_main(module, {**connection, "api_retries": 0, **options}).result["msg"])


def start_services() -> tuple[int, dict[str, tuple[str, str]]]:
    """Start the services. Returns their process, and the base_url and the proxy of each case."""
    # Every unused address drops packets: its queue of connections is full.
    for address in UNUSED_ADDRESSES:
        open_sockets.append(socket.create_server((address, 443), backlog=0))
        for _connection in range(3):
            open_sockets.append(filler := socket.socket())
            filler.setblocking(False)
            filler.connect_ex((address, 443))
    open_sockets.append(dns := socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    dns.bind(("127.0.0.1", 53))
    behind_proxy = "https://x.example.com"
    cases = {
        "8 addresses that drop packets": (f"https://{DROPPING_HOST}", ""),
        "proxy with 8 addresses that drop packets": (behind_proxy, f"http://{DROPPING_HOST}:443"),
        "DNS server that never responds": (f"https://{SILENT_HOST}", ""),
        "proxy whose DNS server never responds": (behind_proxy, f"http://{SILENT_HOST}:3128"),
    }
    listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in SERVICES}
    for name, listener in listeners.items():
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        direct = f"{'https' if 'TLS' in name else 'http'}://{address}/api/v2"
        cases[name] = (behind_proxy, f"http://{address}") if "proxy" in name else (direct, "")
    if not (child := os.fork()):
        for name, replies in SERVICES.items():
            threading.Thread(target=serve, args=[listeners[name], replies], daemon=True).start()
        signal.pause()
    return child, cases


def serve(listener: socket.socket, replies: list[Reply]) -> None:
    while True:
        with suppress(OSError), listener.accept()[0] as connection:
            for each in replies:
                connection.recv(2**16)
                send(connection, each, threading.Event())
