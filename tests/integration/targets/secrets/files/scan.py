# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs everything of the collection that uses a key, then searches its output, logs and files for API keys, and for the password on
standard input, which the error of an operation quotes.

    python scan.py FOLDER BASE_URL API_KEY_FILE SANDBOX_FOLDER SOAK

FOLDER is empty. Exits with 1 and a list if there is a secret in a place where none belongs.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from processes import recorded_command_lines
from search import encodings, generated_keys, known_keys

HERE = Path(__file__).parent
CANARY = "canary\"with\\odd%2F+/=&'<signs>0123456789"
INVALID_KEY_FILE = "invalid.yml"
INVALID_KEY = "invalid-key-for-the-search-0123456789"
ROTATION_MODULES = {"api_key_deployment", "api_key_rotation"}
COLLECTION = Path(
    os.environ["ANSIBLE_COLLECTIONS_PATH"].split(os.pathsep)[0], "ansible_collections", "clouddb", "control"
)
MODULES = {path.stem for path in (COLLECTION / "plugins" / "modules").glob("[!_]*.py")} - ROTATION_MODULES

# Where keys belong: the input of this test, the files that secrets are written to, the arguments of modules that
# ANSIBLE_KEEP_REMOTE_FILES keeps, and the environment that ansible-runner records.
ALLOWED = (
    *("keys/*", "killed/.clouddb-*", "sandbox/api_key", "sandbox/seed.yml", "runner/artifacts/*/command"),
    *(f"home/remote/*/AnsiballZ_{name}.py" for name in sorted({*MODULES, *ROTATION_MODULES, "uri"})),
)


def main() -> int:
    # Ansible creates a socket in the folder for temporary files, and the path of a socket must be short.
    with tempfile.TemporaryDirectory() as short:
        (Path(sys.argv[1]) / "tmp").symlink_to(short)
        return scan(*sys.argv[1:])


def scan(where: str, base_url: str, api_key_file: str, sandbox_folder: str, soak: str) -> int:
    folder, sandbox = Path(where), Path(sandbox_folder)
    api_key = Path(api_key_file).read_text(encoding="utf-8").strip()
    password = sys.stdin.read().strip()
    for name in ("home", "output", "keys", "killed", "cache"):
        (folder / name).mkdir()
    shutil.copytree(HERE / "project", folder / "runner" / "project")
    environment = environment_in(folder, base_url, api_key)
    with recorded_command_lines() as command_lines:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(0.5)", CANARY], check=True)
        exit_codes = [
            run(folder, number, command, {**environment, **extra})
            for number, (command, extra) in enumerate(commands(folder, soak))
        ]
    (folder / "output" / "command_lines").write_bytes(
        b"\n".join(line for line in command_lines if CANARY.encode() not in line)
    )
    (folder / "sandbox").symlink_to(sandbox)

    with sqlite3.connect(f"file:{sandbox / 'sandbox.sqlite'}?mode=ro", uri=True) as database:
        hashes = {row[0] for row in database.execute("SELECT hash FROM api_keys")}
    files = {str(path.relative_to(folder)): path.read_bytes() for path in files_in(folder)}
    problems = [
        *missing(folder, exit_codes, command_lines, hashes),
        *(
            f"{name}: {found}"
            for name, content in files.items()
            for found in keys_in(content, (api_key, INVALID_KEY), hashes)
        ),
        # The sandbox stores what it returns.
        *(
            f"{name}: the password, {found}"
            for name, content in files.items()
            if not name.startswith("sandbox/")
            for found in known_keys(content, [password])
        ),
    ]
    size = sum(map(len, files.values())) // 1000
    print(f"{len(files)} files ({size} kB) and {len(command_lines)} command lines searched for {len(hashes) + 1} keys")
    print("\n".join(problems))
    for number, exit_code in enumerate(exit_codes[:2]):
        if exit_code:
            print((folder / "output" / f"output-{number}").read_text(encoding="utf-8", errors="replace")[-5000:])
    return 1 if problems else 0


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
        "TMPDIR": os.path.realpath(folder / "tmp"),
    }


def commands(folder: Path, soak: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The commands to run, each with additional environment variables."""
    project = folder / "runner" / "project"
    (folder / "keys" / INVALID_KEY_FILE).write_text(f"invalid_key: {INVALID_KEY}\n", encoding="utf-8")
    options = f"--diff -e folder={folder} -e soak={soak} -e @{folder / 'keys' / INVALID_KEY_FILE}"
    yield (
        [
            "ansible-runner",
            "run",
            str(folder / "runner"),
            "-p",
            "all.yml",
            "--inventory",
            str(project / "hosts.yml"),
            "-vvvv",
            "--cmdline",
            options,
        ],
        {},
    )
    inventory = ["ansible-inventory", "-i", str(project / "account.clouddb.yml"), "--list", "-vvvv"]
    yield inventory, {}
    yield [*inventory, "--flush-cache"], {"CLOUDDB_API_KEY": INVALID_KEY}
    yield [*inventory, "--flush-cache"], {"SECRETS_ERROR": "crash"}


def run(folder: Path, number: int, command: list[str], environment: dict[str, str]) -> int:
    """Run one command with its output in a file; returns its exit code."""
    with (folder / "output" / f"output-{number}").open("wb") as output:
        return subprocess.run(
            command, env=environment, stdout=output, stderr=output, check=False, timeout=300
        ).returncode


def files_in(folder: Path) -> Iterator[Path]:
    """All files except those in which keys belong."""
    for parent, _folders, names in os.walk(folder, followlinks=True):
        for path in (Path(parent, name) for name in names):
            if (
                path.is_file()
                and not any(path.relative_to(folder).match(pattern) for pattern in ALLOWED)
                and "venv" not in path.parts
            ):
                yield path


def keys_in(content: bytes, known: tuple[str, ...], hashes: set[bytes]) -> Iterator[str]:
    yield from known_keys(content, known)
    yield from generated_keys(content, hashes)


def missing(folder: Path, exit_codes: list[int], command_lines: set[bytes], hashes: set[bytes]) -> Iterator[str]:
    """The expected traces that are missing: they prove that everything was run, and that the search finds keys."""
    collected = folder / "output"
    texts = {
        path.name: path.read_text(encoding="utf-8", errors="replace") for path in collected.iterdir() if path.is_file()
    }
    output, log, syslog = (texts.get(name, "") for name in ("output-0", "ansible.log", "syslog"))
    secrets = [path.read_bytes().strip() for path in (folder / "keys").glob("[!.]*") if path.name != INVALID_KEY_FILE]
    modules_kept = {path.name for path in (folder / "home" / "remote").rglob("AnsiballZ_*.py")}
    temporary_files = [
        (path.name[:9], stat.S_IMODE(path.stat().st_mode)) for path in (folder / "killed").glob(".*.tmp")
    ]
    checks = {
        "success of the playbook and of the inventory": exit_codes[:2] == [0, 0],
        "a crash of each module": output.count("failed with an unexpected RuntimeError.") >= len(MODULES),
        "censored arguments in the output": '"api_key": "********"' in output,
        "the error of an operation": all(
            "postgres://owner:********@" in texts.get(name, "")
            for name in ("output-0", "output-1", "report.html", "report.json")
        ),
        "invocations in syslog": syslog.count("api_key=NOT_LOGGING_PARAMETER") > 20,
        "the log": "TASK [Wait until the timeout]" in log,
        "kept files of each module": modules_kept >= {f"AnsiballZ_{name}.py" for name in MODULES},
        "job events": len(list((folder / "runner" / "artifacts").rglob("job_events/*.json"))) > 100,
        "a cache": any((folder / "cache").iterdir()),
        "secrets in their files": len(secrets) >= 5 and all(list(generated_keys(secret, hashes)) for secret in secrets),
        "one temporary file with mode 0600": temporary_files == [(".clouddb-", 0o600)],
        "the canary in the process list": any(CANARY.encode() in line for line in command_lines),
        "modules in the process list": any(b"AnsiballZ_api_key.py" in line for line in command_lines),
        "a match for every encoding": all(
            list(known_keys(b"x" + encoded + b"y", [CANARY])) for encoded in encodings(CANARY).values()
        ),
        "a match for a generated key": all(
            list(generated_keys(prefix + secret, hashes)) for secret in secrets[:1] for prefix in (b"", b"x")
        ),
    }
    yield from (f"expected {trace}" for trace, is_found in checks.items() if not is_found)


if __name__ == "__main__":
    sys.exit(main())
