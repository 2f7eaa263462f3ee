# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs everything of the collection that uses a key, then searches its output, logs and files for API keys, and for the password on
standard input, which the error of an operation quotes.

    python scan.py FOLDER BASE_URL API_KEY_FILE SANDBOX_FOLDER

FOLDER is empty. Exits with 1 and a list if there is a secret in a place where none belongs.
"""

from __future__ import annotations

import hashlib
import html
import importlib
import importlib.util
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).parent
# From ansible-core 2.22 on
REGISTERS_SECRETS = importlib.util.find_spec("ansible.module_utils.secrets") is not None
CANARY = "canary\"with\\odd%2F+/=&'<signs>0123456789"
INVALID_KEY = "invalid-key-for-the-search-0123456789"
ROTATION_MODULES = {"api_key_deployment", "api_key_rotation"}
COLLECTION = Path(os.environ["ANSIBLE_COLLECTIONS_PATH"].split(os.pathsep)[0], "ansible_collections/clouddb/control")
MODULES = {path.stem for path in (COLLECTION / "plugins" / "modules").glob("[!_]*.py")} - ROTATION_MODULES
# Where keys belong: the files that secrets are written to, and the arguments of modules that ANSIBLE_KEEP_REMOTE_FILES keeps.
ALLOWED = (
    "keys/*",
    *(f"home/remote/*/AnsiballZ_{name}.py" for name in sorted({*MODULES, *ROTATION_MODULES, "uri"})),
)


def main(where: str, base_url: str, api_key_file: str, sandbox_folder: str) -> int:
    folder = Path(where)
    api_key = Path(api_key_file).read_text(encoding="utf-8").strip()
    known = [api_key, INVALID_KEY, sys.stdin.read().strip()]
    for name in ("home", "output", "keys", "cache"):
        (folder / name).mkdir()
    shutil.copytree(HERE / "project", folder / "project")
    (folder / "project" / "each_module.yml").write_text(json.dumps(tasks_of_each_module()), encoding="utf-8")
    environment = environment_in(folder, base_url, api_key)
    with recorded_command_lines() as command_lines:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(0.5)", CANARY], check=True)
        exit_codes = [
            run(folder, number, command, {**environment, **extra})
            for number, (command, extra) in enumerate(commands(folder))
        ]
    with sqlite3.connect(f"file:{sandbox_folder}/sandbox.sqlite?mode=ro", uri=True) as database:
        hashes = {row[0] for row in database.execute("SELECT hash FROM api_keys")}
    contents = {str(path.relative_to(folder)): path.read_bytes() for path in files_in(folder)}
    contents["command lines"] = b"\n".join(line for line in command_lines if CANARY.encode() not in line)
    problems = [
        *missing(folder, exit_codes, command_lines, hashes),
        *(f"{name}: {found}" for name, content in contents.items() for found in secrets_in(content, known, hashes)),
    ]
    print(f"{len(contents)} files and {len(command_lines)} command lines searched for {len(hashes) + 2} secrets")
    print("\n".join(problems))
    for number, exit_code in enumerate(exit_codes[:2]):
        if exit_code:
            print((folder / "output" / f"output-{number}").read_text(encoding="utf-8", errors="replace")[-5000:])
    return 1 if problems else 0


def tasks_of_each_module() -> list[dict[str, Any]]:
    """A task for each module that users call."""
    sys.path.append(str(COLLECTION.parents[2]))
    each_module = importlib.import_module("ansible_collections.clouddb.control.tests.unit.support.each_module")
    options = {each_module.name_of(module): options for module, options in each_module.EACH_MODULE}
    options["api_key"]["dest"] = "{{ folder }}/keys/clients"
    options["branch_restore"]["name"] = "missing"  # an operation of the project never ends
    options["operation_wait"] = {"project_id": each_module.SHOP, "timeout": 1}
    return [{"name": name, f"clouddb.control.{name}": given} for name, given in options.items()]


def environment_in(folder: Path, base_url: str, api_key: str) -> dict[str, str]:
    """An environment in which Ansible prints, logs and keeps as much as possible, all in this folder."""
    home = folder / "home"
    return {
        **os.environ,
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(folder / "cache"),
        "ANSIBLE_DISPLAY_TRACEBACK": "always",
        "ANSIBLE_HOME": str(home / ".ansible"),
        "ANSIBLE_INJECT_INVOCATION": "1",
        "ANSIBLE_KEEP_REMOTE_FILES": "1",
        "ANSIBLE_LOCAL_TEMP": str(home / "local"),
        "ANSIBLE_LOG_PATH": str(folder / "output" / "ansible.log"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_REMOTE_TMP": str(home / "remote"),
        "CLOUDDB_API_KEY": api_key,
        "CLOUDDB_BASE_URL": base_url,
        "HOME": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE / "hooks"), os.environ.get("PYTHONPATH")])),
        "SECRETS_SYSLOG": str(folder / "output" / "syslog"),
    }


def commands(folder: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The commands to run, each with additional environment variables."""
    project = folder / "project"
    (folder / "keys" / ".invalid.yml").write_text(f"invalid_key: {INVALID_KEY}\n", encoding="utf-8")
    variables = ["-e", f"folder={folder}", "-e", f"@{folder}/keys/.invalid.yml"]
    yield (
        ["ansible-playbook", str(project / "all.yml"), "-i", str(project / "hosts.yml"), "-vvvv", "--diff", *variables],
        {},
    )
    inventory = ["ansible-inventory", "-i", str(project / "account.clouddb.yml"), "--list", "-vvvv"]
    yield inventory, {}
    yield [*inventory, "--flush-cache"], {"CLOUDDB_API_KEY": INVALID_KEY}
    yield [*inventory, "--flush-cache"], {"SECRETS_ERROR": "crash"}
    if REGISTERS_SECRETS:
        yield ["ansible-playbook", str(project / "show.yml"), "-vvv", "--diff"], {"ANSIBLE_KEEP_REMOTE_FILES": "0"}


def run(folder: Path, number: int, command: list[str], environment: dict[str, str]) -> int:
    """Run one command with its output in a file; returns its exit code."""
    with (folder / "output" / f"output-{number}").open("wb") as output:
        return subprocess.run(
            command, env=environment, stdout=output, stderr=output, check=False, timeout=900
        ).returncode


@contextmanager
def recorded_command_lines() -> Iterator[set[bytes]]:
    """The command lines of the process list, which any user of the machine can read."""
    recorded: set[bytes] = set()
    ended = threading.Event()

    def record() -> None:
        while not ended.wait(0.05):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    recorded.add(path.read_bytes().replace(b"\0", b" "))

    recorder = threading.Thread(target=record)
    recorder.start()
    try:
        yield recorded
    finally:
        ended.set()
        recorder.join()


# The search


def encodings(secret: str) -> dict[str, bytes]:
    """The secret in each encoding that files and output can have, by name."""
    escaped = json.dumps(secret)[1:-1]
    texts = {
        "plain": secret,
        "JSON": escaped,
        "JSON in JSON": json.dumps(escaped)[1:-1],
        "repr": repr(secret)[1:-1],
        "URL": quote(secret, safe=""),
        "HTML": html.escape(secret),
    }
    return {name: text.encode() for name, text in texts.items()}


def secrets_in(content: bytes, known: list[str], hashes: set[bytes]) -> Iterator[str]:
    """A description of each known secret, in any encoding, and of each generated key, by its SHA-256 hash."""
    for number, secret in enumerate(known):
        yield from (f"secret {number}, {name}" for name, encoded in encodings(secret).items() if encoded in content)
    # The sandbox generates secrets of 64 letters and digits.
    for text in re.finditer(rb"[a-z0-9]{64,}", content):
        digests = (hashlib.sha256(text[0][begin : begin + 64]).digest() for begin in range(len(text[0]) - 63))
        yield from (f"a key whose hash begins with {digest.hex()[:8]}" for digest in digests if digest in hashes)


def files_in(folder: Path) -> Iterator[Path]:
    """All files except those in which keys belong."""
    for path in folder.rglob("*"):
        if path.is_file() and not any(path.relative_to(folder).match(pattern) for pattern in ALLOWED):
            yield path


def missing(folder: Path, exit_codes: list[int], command_lines: set[bytes], hashes: set[bytes]) -> Iterator[str]:
    """The expected traces that are missing: they prove that everything was run, and that the search finds keys."""
    texts = {
        path.name: path.read_text(encoding="utf-8", errors="replace")
        for path in (folder / "output").iterdir()
        if path.is_file()
    }
    output, log, syslog = (texts.get(name, "") for name in ("output-0", "ansible.log", "syslog"))
    secrets = [path.read_bytes().strip() for path in (folder / "keys").glob("[!.]*")]
    modules_kept = {path.name for path in (folder / "home" / "remote").rglob("AnsiballZ_*.py")}
    checks = {
        "success of the playbook and of the inventory": exit_codes[:2] == [0, 0],
        "a crash of each module": output.count("failed with an unexpected RuntimeError.") >= len(MODULES),
        "censored arguments in the output": re.search(r'"api_key": "(\*{8}|\$REDACTED\$)"', output) is not None,
        "the error of an operation": all(
            "postgres://owner:********@" in texts.get(name, "")
            for name in ("output-0", "output-1", "report.html", "report.json")
        ),
        "invocations in syslog": len(re.findall(r"api_key=(?:\*{8}|\$REDACTED\$|NOT_LOGGING_PARAMETER)", syslog)) > 20,
        "masked secrets": not REGISTERS_SECRETS or texts.get("output-4", "").count("$REDACTED$") > 5,
        "both ways to run a module": not REGISTERS_SECRETS
        or texts.get("output-4", "").count("The variable clouddb_fork is false.") == 1,
        "the log": "TASK [operation_wait]" in log,
        "kept files of each module": modules_kept >= {f"AnsiballZ_{name}.py" for name in MODULES},
        "a cache": any((folder / "cache").iterdir()),
        "secrets in their files": len(secrets) >= 5 and all(list(secrets_in(key, [], hashes)) for key in secrets),
        "the canary in the process list": any(CANARY.encode() in line for line in command_lines),
        "modules in the process list": any(b"AnsiballZ_api_key.py" in line for line in command_lines),
        "a match for every encoding": all(
            list(secrets_in(b"x" + encoded + b"y", [CANARY], set())) for encoded in encodings(CANARY).values()
        ),
    }
    yield from (f"expected {trace}" for trace, is_found in checks.items() if not is_found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
