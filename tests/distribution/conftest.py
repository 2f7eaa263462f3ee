# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user who has copied the examples, an account in a sandbox, and the stores."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import pytest
from github_api import GithubApi
from installation import download_collections, install_collection, run_program, user_environment
from kubernetes_api import KubernetesApi
from openbao import OpenBao, running_openbao
from sandbox import API_KEY, Sandbox, running_sandbox
from scripted_service import scripted_service
from stores import GithubSecret, KubernetesSecret, KvSecret, Store, VaultedVariable

# The first version of the package whose community.general has github_secrets needs a newer Python than the collections do.
PACKAGE = "14.5.0"
COLLECTIONS = ("community.general", "community.hashi_vault", "kubernetes.core")

# A text in the form of a key that is no checksum, or its encoding in base64.
SECRET = re.compile(r"(?<![\w-])(?![0-9a-f]{64})[0-9a-z]{64}(?![\w-])|(?<![\w/+])[\w/+]{86}==")


class Run(NamedTuple):
    """The exit status and the output of a run of a playbook."""

    status: int
    output: str

    def changed(self) -> bool:
        [changed] = re.findall(r"^localhost +: .* changed=(\d+) .* failed=0 ", self.output, re.MULTILINE)
        return changed != "0"


class User:
    """Runs the examples, which are in C(folder). No run may leave a secret anywhere but in its store."""

    def __init__(self, home: Path, collections: list[Path], sandbox: Sandbox) -> None:
        self.home, self.sandbox = home, sandbox
        self.folder = home / "examples"
        examples = collections[0] / "ansible_collections" / "clouddb" / "control" / "examples"
        shutil.copytree(examples, self.folder, ignore=shutil.ignore_patterns("project", "inventory"))
        (home / "tmp").mkdir()
        self._env = user_environment(
            home,
            ANSIBLE_CACHE_PLUGIN="jsonfile",
            ANSIBLE_CACHE_PLUGIN_CONNECTION=str(home / "facts"),
            ANSIBLE_COLLECTIONS_PATH=":".join(map(str, collections)),
            ANSIBLE_LOG_PATH=str(home / "ansible.log"),
            ANSIBLE_REMOTE_TEMP=str(home / "tmp"),
            CLOUDDB_BASE_URL=sandbox.base_url,
            TMPDIR=str(home / "tmp"),
        )

    def rotate(self, store: Store, *options: str, **settings: Any) -> Run:
        env = {"CLOUDDB_API_KEY": API_KEY, **store.env, **store.job()}
        extra_vars = json.dumps({**store.settings, **settings})
        command = ["ansible-playbook", "-vvv", store.playbook, "--extra-vars", extra_vars, *options]
        done = run_program(command, self.folder, env={**self._env, **env})
        print(done.stdout)
        assert not SECRET.search(done.stdout)
        assert self.files_with_secrets() == []
        secrets = [value for name, value in env.items() if name.endswith(("API_KEY", "TOKEN"))]
        assert not any(secret in done.stdout for secret in secrets)
        return Run(done.returncode, done.stdout)

    def files_with_secrets(self) -> list[Path]:
        files = [path for path in self.home.rglob("*") if path.is_file()]
        return [path for path in files if SECRET.search(path.read_text(encoding="utf-8", errors="replace"))]

    def keys(self, store: Store) -> list[int]:
        """The ids of the active keys that the example of the store manages, the oldest first."""
        prefix = store.playbook.removeprefix("rotate_").removesuffix(".yml").rpartition("_")[0].replace("_", "-")
        return sorted(key["id"] for key in self.sandbox.api("GET", "/api_keys") if key["name"].startswith(f"{prefix}-"))


def pytest_configure(config: pytest.Config) -> None:
    """Download the collections before the workers start."""
    download_collections(PACKAGE, *COLLECTIONS)


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [install_collection(tmp_path_factory.mktemp("user")), download_collections(PACKAGE, *COLLECTIONS)]


@pytest.fixture(scope="session")
def bao(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBao]:
    with running_openbao(tmp_path_factory.mktemp("openbao")) as running:
        yield running


@pytest.fixture
def user(tmp_path: Path, collections: list[Path]) -> Iterator[User]:
    # Ansible has sockets in the home folder, whose paths must be short.
    with tempfile.TemporaryDirectory() as home, running_sandbox(tmp_path, projects=[]) as sandbox:
        yield User(Path(home), collections, sandbox)


@pytest.fixture
def stores(request: pytest.FixtureRequest, user: User, tmp_path: Path) -> Iterator[Callable[[type[Store]], Store]]:
    """Creates a store of a kind, empty except for another value."""
    with ExitStack() as stack:

        def create(kind: type[Store]) -> Store:
            if kind is VaultedVariable:
                return VaultedVariable(user.folder, tmp_path)
            if kind is KvSecret:
                # The server is one for all tests. The name of a key contains the path, and has at most 64 characters.
                return KvSecret(request.getfixturevalue("bao"), f"{token_hex(4)}/clouddb")
            if kind is KubernetesSecret:
                return KubernetesSecret(stack.enter_context(scripted_service(service_class=KubernetesApi)))
            return GithubSecret(stack.enter_context(scripted_service(service_class=GithubApi)))

        yield create


@pytest.fixture(params=[VaultedVariable, KvSecret, KubernetesSecret, GithubSecret], ids=lambda kind: kind.__name__)
def store(request: pytest.FixtureRequest, stores: Callable[[type[Store]], Store]) -> Store:
    return stores(request.param)
