# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox for each test: C(service) and those of C(serve) are without HTTP, C(served) has a real socket."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime, timedelta
from json import dumps
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
import requests

from ansible_collections.clouddb.control.tests.unit.support.sandbox import (
    API_KEY,
    BASE_PATH,
    Application,
    Settings,
    application_in_memory,
    create_app,
    run_in_thread,
    run_to_end,
)

PROJECT = "wispy-lake-12345678"
IN_PROCESS = f"http://127.0.0.1:1{BASE_PATH}"
SEED = {"projects": [{"id": PROJECT, "name": "shop", "age": "1d"}]}


class Service:
    """Client of a sandbox. Paths without a leading slash are relative to the base URL, others to the host.

    It calls C(application) if there is one, and sends HTTP requests otherwise.
    """

    def __init__(self, base_url, api_key=API_KEY, application=None):
        self.base_url = base_url
        self.host_url = base_url.removesuffix("/api/v2")
        self.headers = {"Authorization": f"Bearer {api_key}"}
        self.application = application

    def request(self, method, path, *, headers=(), **options):
        target = path if path.startswith("/") else f"{BASE_PATH}/{path}"
        headers = {**self.headers, **dict(headers)}
        if self.application:
            return self.call(method, target, headers, **options)
        with requests.Session() as session:
            session.trust_env = False
            options |= {"headers": headers, "timeout": 60, "allow_redirects": False}
            return session.request(method, f"{self.host_url}{target}", **options)

    def call(self, method, target, headers, params=(), json=None, data=b""):
        """As requests would, in half of the time."""
        if json is not None:
            headers, data = {"Content-Type": "application/json", **headers}, dumps(json)
        fields = [(name.lower().encode(), value.encode()) for name, value in headers.items() if value is not None]
        url = f"{target}?{urlencode(params)}" if params else target
        answer = self.application.send(method, url, fields, data if isinstance(data, bytes) else data.encode())
        response = requests.Response()
        response.status_code, response._content, response.encoding = answer.status, answer.content, "utf-8"
        response.headers.update((name.decode(), value.decode("latin-1")) for name, value in answer.headers)
        return response

    def get(self, path, **params):
        return self.request("GET", path, params=params)

    def ok(self, method, path, **options):
        """Send a request that must succeed. Returns the parsed response body."""
        response = self.request(method, path, **options)
        assert response.ok, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()

    def finished(self, method, path, **options):
        """The same, and advance the clock until its operations are finished."""
        body = self.ok(method, path, **options)
        self.advance(5)
        return body

    def as_key(self, api_key):
        return Service(self.base_url, api_key, self.application)

    def create_key(self, name="ci"):
        return self.ok("POST", "api_keys", json={"key_name": name})

    def keys(self):
        return self.ok("GET", "api_keys")

    def create_branch(self, **body):
        return self.ok("POST", f"projects/{PROJECT}/branches", json=body)

    def create_finished_branch(self, **body):
        """Create a branch and advance the clock until its operations are finished. Returns its path."""
        branch = self.create_branch(**body)["branch"]
        self.advance(5)
        return f"projects/{PROJECT}/branches/{branch['id']}"

    def create_database(self, branch_id, name="orders", owner="clouddb_owner"):
        body = {"database": {"name": name, "owner_name": owner}}
        return self.request("POST", f"projects/{PROJECT}/branches/{branch_id}/databases", json=body)

    def default_branch(self):
        return next(branch["id"] for branch in self.branches() if branch["default"])

    def branches(self):
        """The branches of the project, oldest first."""
        params = {"sort_by": "created_at", "sort_order": "asc"}
        return self.ok("GET", f"projects/{PROJECT}/branches", params=params)["branches"]

    def names(self):
        return [branch["name"] for branch in self.branches()]

    def create_compute(self, branch, **fields):
        """The response to the creation of a compute on the branch at this path."""
        fields = {"branch_id": branch.rsplit("/", 1)[1], "type": "read_write", **fields}
        return self.request("POST", f"projects/{PROJECT}/endpoints", json={"endpoint": fields})

    def create_role(self, name="app"):
        """Create a role that owns nothing on the default branch."""
        roles = f"projects/{PROJECT}/branches/{self.default_branch()}/roles"
        self.finished("POST", roles, json={"role": {"name": name}})

    def operation(self, operation):
        path = f"projects/{operation['project_id']}/operations/{operation['id']}"
        return self.ok("GET", path)["operation"]

    def operations(self, project_id=PROJECT, **params):
        return self.ok("GET", f"projects/{project_id}/operations", params={"limit": 1000, **params})["operations"]

    def advance(self, seconds):
        return self.ok("PUT", "/_sandbox/clock", json={"advance": seconds})

    def later(self, days):
        """The time of the sandbox's clock in so many days."""
        now = datetime.fromisoformat(self.ok("GET", "/_sandbox/clock")["now"].replace("Z", "+00:00"))
        return (now + timedelta(days=days)).isoformat()

    def fault(self, kind, **details):
        return self.ok("POST", "/_sandbox/faults", json={"kind": kind, **details})

    def plan(self, timeline, **details):
        return self.ok("POST", "/_sandbox/operation_plans", json={"timeline": timeline, **details})

    def log(self):
        return self.ok("GET", "/_sandbox/requests")["requests"]


@pytest.fixture
def connect():
    """Factory of clients, from a base URL and an API key."""
    return Service


@pytest.fixture
def serve(tmp_path):
    """Factory of sandboxes, with the same database for all of a test. The clock is stopped unless a speed is given."""
    with ExitStack() as running:

        def start(seed=None, speed=0.0, api_key=API_KEY, **settings):
            app = create_app(Settings(tmp_path / "sandbox.sqlite", api_key, seed, speed=speed, **settings))
            running.callback(app.state.sandbox.store.close)
            app.state.server = SimpleNamespace(server_state=SimpleNamespace(connections=()))
            return Service(IN_PROCESS, api_key, Application(app, run_to_end))

        yield start


def in_memory():
    """A sandbox with one project, created a day ago."""
    with application_in_memory(**SEED) as application:
        yield Service(IN_PROCESS, application=application)


service = pytest.fixture(in_memory, name="service")
shared = pytest.fixture(in_memory, name="shared", scope="module")


@pytest.fixture
def served(tmp_path, request):
    """The same on a real socket, or what the parameter sets."""
    settings = {"seed": SEED, "speed": 0, **getattr(request, "param", {})}
    with run_in_thread(Settings(tmp_path / "sandbox.sqlite", API_KEY, **settings)) as (base_url, _server):
        yield Service(base_url)
