# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server of OpenBao, whose API is that of HashiCorp Vault. It stores its secrets in memory."""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hvac
import requests

SECONDS_TO_START = 60


class OpenBao:
    """The address of a server, and a client with all permissions."""

    def __init__(self, url: str, root_token: str) -> None:
        self.url = url
        self.client = hvac.Client(url, root_token)

    def token(self, path: str, *capabilities: str) -> str:
        """A token with these capabilities on one secret of the KV secrets engine."""
        rule = f'path "secret/data/{path}" {{ capabilities = [{", ".join(map(repr, capabilities))}] }}'
        name = secrets.token_hex(8)
        self.client.sys.create_or_update_policy(name, rule.replace("'", '"'))
        return str(self.client.auth.token.create(policies=[name])["auth"]["client_token"])

    def read(self, path: str) -> dict[str, Any]:
        """The fields of a secret; empty if there is no secret."""
        try:
            read = self.client.secrets.kv.v2.read_secret_version(path, raise_on_deleted_version=True)
        except hvac.exceptions.InvalidPath:
            return {}
        return dict(read["data"]["data"])

    def version(self, path: str) -> int:
        """The number of versions that were written of a secret."""
        try:
            return int(self.client.secrets.kv.v2.read_secret_metadata(path)["data"]["current_version"])
        except hvac.exceptions.InvalidPath:
            return 0

    def put(self, path: str, **fields: str) -> None:
        """Write a new version of a secret with these fields, and those that it has."""
        self.client.secrets.kv.v2.create_or_update_secret(path, {**self.read(path), **fields})


@contextmanager
def running_openbao(folder: Path) -> Iterator[OpenBao]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    root_token = secrets.token_hex(16)
    bao = OpenBao(f"http://127.0.0.1:{port}", root_token)
    options = (f"-dev-listen-address=127.0.0.1:{port}", f"-dev-root-token-id={root_token}", "-dev-no-store-token")
    with (folder / "openbao.log").open("w", encoding="utf-8") as log:
        command = [str(Path(sys.executable).with_name("bao")), "server", "-dev", *options]
        with subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                _wait_until_ready(bao, process)
                yield bao
            finally:
                process.terminate()


def _wait_until_ready(bao: OpenBao, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(requests.ConnectionError, hvac.exceptions.VaultError):
            if bao.client.secrets.kv.v2.read_configuration():
                return
        time.sleep(0.1)
    raise RuntimeError(f"OpenBao did not start within {SECONDS_TO_START} seconds.")
