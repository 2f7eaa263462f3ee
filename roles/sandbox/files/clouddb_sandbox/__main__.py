# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: python -m clouddb_sandbox, with its files in the current directory unless it names others."""

from __future__ import annotations

import argparse
import hashlib
import ipaddress
import json
import logging
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from . import keys
from .app import create_app
from .atomic_file import write_atomically
from .clock import MAX_SPEED
from .lock import database_lock
from .server import Server, base_url, bind_socket
from .settings import Settings


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="clouddb_sandbox", description="A local control API for tests.")
    parser.add_argument(
        "--database",
        type=Path,
        default=Path("clouddb-sandbox.sqlite"),
        help="SQLite file; created if missing (default: %(default)s)",
    )
    parser.add_argument("--seed", type=Path, help="YAML or JSON file with the content of a new database")
    parser.add_argument(
        "--seed-checksum-file",
        type=Path,
        help="file for the SHA-256 checksum of the seed file that the database was created from",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free port)")
    parser.add_argument(
        "--api-key-file",
        type=Path,
        default=Path("clouddb-sandbox.key"),
        help="file with the first API key; created with a random key if missing (default: %(default)s)",
    )
    parser.add_argument("--ready-file", type=Path, help="JSON file, written when the sandbox listens")
    parser.add_argument(
        "--speed",
        type=float,
        help="sandbox seconds per real second (default: the stored speed, or 1 in a new database)",
    )
    parser.add_argument(
        "--lock",
        choices=("branch", "project"),
        default="branch",
        help="what an unfinished operation locks (default: %(default)s)",
    )
    parser.add_argument(
        "--limits", type=json.loads, default={}, help='limits of a plan, as JSON: {"branches": 10} (default: none)'
    )
    parser.add_argument("--exit-with", type=int, default=0, help="id of a process; the sandbox ends when it has ended")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        companion = options.exit_with
        since = start_time(companion)
        with database_lock(options.database) as is_lost:
            serve(options, lambda: is_lost() or (companion > 0 and not is_running(companion, since)))
    except BlockingIOError:
        return report_failure(f"Another sandbox uses {options.database}. Stop it, or choose another database.")
    except (OSError, ValueError, sqlite3.Error) as error:
        return report_failure(str(error))
    return 0


def report_failure(message: str) -> int:
    print(f"The sandbox cannot start. {message}", file=sys.stderr)
    return 1


def is_running(pid: int, since: str) -> bool:
    """Return whether the process runs that has started then; neither a zombie nor a later one with its id does."""
    return start_time(pid) == since != ""


def start_time(pid: int) -> str:
    """Return when a process has started, in the system's units; empty if it does not run."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:  # it is another user's
        pass
    try:
        # The state and further fields follow the name in parentheses, which may contain any character.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return "unknown"  # the system has no such files, or hides those of other users
    return "" if fields[0] in ("Z", "X") else fields[19]


def serve(options: argparse.Namespace, should_end: Callable[[], bool]) -> None:
    if options.speed is not None and not 0 <= options.speed <= MAX_SPEED:
        raise ValueError(f"The speed {options.speed} is not between 0 and {MAX_SPEED}. Check --speed.")
    seed = options.seed.read_bytes() if options.seed else None
    settings = Settings(
        database=options.database,
        api_key=read_or_create_key(options.api_key_file),
        seed=None if seed is None else parse_seed(options.seed, seed),
        seed_checksum=None if seed is None else hashlib.sha256(seed).hexdigest(),
        speed=options.speed,
        lock=options.lock,
        limits=options.limits,
    )
    with bind_socket(options.host, options.port) as listener:
        host, port = listener.getsockname()[:2]
        if not ipaddress.ip_address(host).is_loopback:
            print(f"Warning: the sandbox listens on {host}, so other machines may reach it.", file=sys.stderr)
        ready = {"base_url": base_url(listener), "host": options.host, "port": port, "pid": os.getpid()}
        app = create_app(settings)
        checksum = app.state.sandbox.store.seed_checksum()
        if options.seed_checksum_file and checksum:
            write_atomically(options.seed_checksum_file, checksum)

        def announce() -> None:
            print(f"The sandbox listens at {ready['base_url']}. Its key is in {options.api_key_file}.", flush=True)
            if options.ready_file:
                write_atomically(options.ready_file, json.dumps(ready))

        server = Server(app, announce, should_end)
        server.run(sockets=[listener])


def read_or_create_key(path: Path) -> str:
    """Return the key in the file. Writes a new one if the file is missing or empty."""
    secret = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    if not secret:
        secret = keys.generate_secret()
        write_atomically(path, secret + "\n")
    return secret


def parse_seed(path: Path, content: bytes) -> Any:
    """Parse the content of the seed file. Raises ValueError if it is neither YAML nor JSON."""
    try:
        return yaml.safe_load(content.decode("utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is neither YAML nor JSON: {error}") from error


def command() -> None:
    os.umask(0o077)  # because the database contains passwords
    sys.exit(main())


if __name__ == "__main__":
    command()
