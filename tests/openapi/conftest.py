# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenAPI document of the public service, its command line client, and a sandbox for each test."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract import Contract
from document import Document

from ansible_collections.clouddb.control.tests.unit.plugins.conftest import plain_environment
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox, running_sandbox

__all__ = ["plain_environment"]

# The first package has the OpenAPI document. The package has the MIT license, but the document calls itself proprietary,
# so it is downloaded instead of copied into this repository.
PACKAGES = ("@neondatabase/api-client@2.7.3", "neon@6.2.3")
INSTALLED = Path(sys.prefix) / "-".join(["npm", *(package.rpartition("@")[2] for package in PACKAGES)])
DOCUMENT = INSTALLED / "node_modules/@neondatabase/api-client/public-v2-for-users.gen.yaml"
NODE = Path(sys.prefix) / "bin" / "node"

PROJECT = "wispy-lake-12345678"
BRANCHES = "/projects/{project_id}/branches"
# The role that owns the database of the account
ROLE = "casey"
# One that owns nothing, and so can be deleted
SPARE_ROLE = "robin"


def install() -> None:
    """Install the packages once for all test runs."""
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        target = Path(folder) / INSTALLED.name
        options = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", target]
        # A network may have a certificate authority of its own, which only the system knows.
        env = {**os.environ, "NODE_OPTIONS": f"{os.environ.get('NODE_OPTIONS', '')} --use-system-ca"}
        command = [NODE.with_name("npm"), "install", *options, *PACKAGES]
        subprocess.run(command, env=env, check=True, stdout=sys.stderr)
        target.rename(INSTALLED)


@pytest.fixture(scope="session")
def installed() -> Path:
    """The folder of the packages."""
    if not INSTALLED.exists():
        install()
    return INSTALLED


@pytest.fixture(scope="session")
def contract(installed: Path) -> Contract:
    return Contract(Document.read(DOCUMENT))


class Account:
    """A sandbox with a project, a branch with a role and a database, another without a compute, and nothing unfinished."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.parameters: dict[str, Any] = {"project_id": PROJECT, "role_name": ROLE, "database_name": "neondb"}
        self.parameters["key_id"] = sandbox.keys("ci")[0]["id"]
        self.parent_id = sandbox.api("GET", BRANCHES.format(**self.parameters))["branches"][0]["id"]
        branch = self.create(BRANCHES, {"branch": {"name": "preview"}})
        self.parameters.update(branch_id=branch["branch"]["id"], endpoint_id=branch["endpoints"][0]["id"])
        self.parameters["operation_id"] = branch["operations"][0]["id"]
        self.parameters["org_id"] = sandbox.api("GET", "/users/me/organizations")["organizations"][0]["id"]
        self.bare_branch_id = self.create(BRANCHES, {"branch": {"name": "bare"}, "endpoints": []})["branch"]["id"]
        self.org_key_id = self.create("/organizations/{org_id}/api_keys", {"key_name": "org"})["id"]
        snapshot = self.create(f"{BRANCHES}/{self.parent_id}/snapshot", None)
        self.parameters["snapshot_id"] = snapshot["snapshot"]["id"]
        members = sandbox.api("GET", "/organizations/{org_id}/members".format(**self.parameters))["members"]
        self.parameters["member_id"] = members[-1]["member"]["id"]
        granted = self.create("/projects/{project_id}/permissions", {"email": "guest@example.com"})
        self.parameters["permission_id"] = granted["id"]
        self.create(BRANCHES + "/{branch_id}/roles", {"role": {"name": ROLE}})
        self.create(BRANCHES + "/{branch_id}/roles", {"role": {"name": SPARE_ROLE}})
        self.create(BRANCHES + "/{branch_id}/databases", {"database": {"name": "neondb", "owner_name": ROLE}})

    def create(self, path: str, body: Any) -> Any:
        """Create an object, and let its operations finish, because unfinished ones lock the project."""
        created = self.sandbox.api("POST", path.format(**self.parameters), body)
        self.sandbox.advance(60)
        return created


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    seed = {"projects": [{"id": PROJECT, "name": "shop", "age": "1d"}], "api_keys": [{"name": "ci"}]}
    seed["members"] = [{"email": "colleague@example.com", "role": "member"}]
    with running_sandbox(tmp_path, **seed) as running:
        yield Account(running)
