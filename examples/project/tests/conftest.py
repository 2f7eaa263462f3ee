"""A sandbox of the service for each test."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment for a playbook: that of pytest, with the address and the key of a new sandbox."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "sandbox_dir": f"{tmp_path}/sandbox",
        "sandbox_virtualenv": f"{PROJECT}/.sandbox",
        "sandbox_port": port,
        "sandbox_seed_file": f"{PROJECT}/tests/seed.yml",
    }
    role = ["ansible", "localhost", "-m", "include_role", "-a", "name=clouddb.control.sandbox", "-e"]
    connection = {"CLOUDDB_BASE_URL": f"http://127.0.0.1:{port}/api/v2", "CLOUDDB_API_KEY": "key-of-the-sandbox"}
    try:
        subprocess.run([*role, json.dumps(options)], check=True)
        yield {**os.environ, **connection}
    finally:
        subprocess.run([*role, json.dumps({**options, "sandbox_state": "absent"})], check=True)
