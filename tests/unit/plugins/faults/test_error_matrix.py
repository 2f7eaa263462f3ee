# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every error of the matrix through main() and over a real socket, a transient error, then a permanent one: in the requests of the
matrix, and in the first request of every module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml
from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import inventory_loader

from ansible_collections.clouddb.control.plugins.module_utils._http import backoff
from ansible_collections.clouddb.control.plugins.modules import operation_wait
from ansible_collections.clouddb.control.tests.unit.plugins.faults import matrix
from ansible_collections.clouddb.control.tests.unit.plugins.faults.faulty_proxy import ERRORS, FaultyProxy
from ansible_collections.clouddb.control.tests.unit.plugins.faults.matrix import MATRIX, RETRY_AFTER, Expected, Row
from ansible_collections.clouddb.control.tests.unit.support import each_module
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = "wispy-lake-12345678"
REFUSED = "connection refused"
STRIDE = 10
STRIDE_OF_MODULES = 40

# A task with these connection options, for the key or the operation of this name.
Run = Callable[[dict[str, Any], str], Outcome]


class Column(NamedTuple):
    """A task of the matrix: its column there, and which of its requests gets the error, after C(skip) requests of the method."""

    expected: str
    run: Run
    method: str = "GET"
    skip: int = 0


def with_name(value: Any, name: str) -> Any:
    """The value, with the name in place of each C(...)."""
    if isinstance(value, dict):
        return {field: with_name(each, name) for field, each in value.items()}
    return name if value is ... else value


def task(module: str, **options: Any) -> Run:
    """The module with these options."""
    return lambda connection, name: run_main(
        each_module.module_named(module), {**connection, **with_name(options, name)}
    )


def inventory(connection: dict[str, Any], name: str) -> Outcome:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "test.clouddb.yml"
        path.write_text(yaml.safe_dump({"plugin": "clouddb.control.projects", "page_size": 100, **connection}))
        try:
            inventory_loader.get("clouddb.control.projects").parse(InventoryData(), DataLoader(), str(path))
        except AnsibleParserError as error:
            return Outcome(1, {"failed": True, "msg": error.message}, error.message)
    return Outcome(0, {}, "")


FIND = {"list": "projects", "match": {"name": ...}}
request = partial(task, "api_request", find=FIND, wait=False, lock_timeout=130, interval=100)
# With time for several polls.
wait = partial(task, "operation_wait", project_id=SHOP, timeout=200, interval=100)
COLUMNS = {
    "api_key present": Column("present", task("api_key", name=...), "POST"),
    "api_key absent": Column("absent", task("api_key", name=..., state="absent"), "DELETE"),
    "api_request create": Column(
        "create", request(method="POST", path="projects", body={"project": {"name": ...}}), "POST"
    ),
    "api_request delete": Column("delete", request(method="DELETE", path="projects/{id}"), "DELETE"),
    "api_key_info": Column("reads", task("api_key_info")),
    "api_key_policy": Column("reads", task("api_key_policy")),
    "project_info": Column("reads", task("project_info", page_size=100)),
    "operation_info": Column("reads", task("operation_info", project_id=SHOP, page_size=100)),
    "projects": Column("reads", inventory),
    "operation_wait first poll": Column("first_poll", wait(operation_id="done")),
    "operation_wait later poll": Column("later_poll", wait(operation_id=...), skip=1),
}


@pytest.fixture
def seed() -> dict[str, Any]:
    """A key to revoke and an operation to wait for, for the transient and for the permanent error."""
    durations = {"transient": 100, "permanent": 1_000_000}
    unfinished = [
        {"id": name, "action": "create_branch", "age": "1m", "timeline": [[0, "running"], [duration, "finished"]]}
        for name, duration in durations.items()
    ]
    done = {"id": "done", "action": "start_compute", "age": "1h"}
    to_delete = [{"name": f"{name}-to-delete", "compute": False} for name in durations]
    return {
        "api_keys": [{"name": f"{name}-to-revoke"} for name in durations],
        "projects": [{"id": SHOP, "operations": [*unfinished, done]}, *to_delete],
    }


class Cell:
    """A task with an error injected by the proxy: how often the request that got the error was sent, and the pauses."""

    def __init__(self, sandbox: Sandbox, proxy: FaultyProxy, clock: FakeClock, error: str, column: Column):
        self.sandbox, self.proxy, self.clock, self.error, self.column = sandbox, proxy, clock, error, column

    def run(self, name: str, is_permanent: bool) -> Outcome:
        column, pauses_before = self.column, len(self.clock.pauses)
        self.is_permanent = is_permanent
        self.proxy.inject(ERRORS.get(self.error), column.method, 1000 if is_permanent else 1, column.skip)
        self.clock.on_sleep = self._on_sleep
        connection = {"base_url": self.proxy.base_url, "api_key": self.sandbox.api_key}
        outcome = column.run({**connection, "api_timeout": 60, "api_retries": 1}, name)
        targets = [request.target for request in self.proxy.requests if request.method == column.method]
        self.requests = targets.count(targets[0]) - column.skip if targets else 0
        self.pauses = self.clock.pauses[pauses_before:]
        return outcome

    def _on_sleep(self, _seconds: float) -> None:
        """After a transient error, the operation that a wait polls goes on."""
        if self.column.expected == "later_poll" and not self.is_permanent:
            self.sandbox.advance(50)


def some(items: Iterable[Any], number: int, stride: int, is_soak: bool) -> list[Any]:
    """The items, without soak one in C(stride), other ones for the next number."""
    return list(items)[0 if is_soak else number % stride :: 1 if is_soak else stride]


@pytest.mark.parametrize("error", MATRIX)
def test_outcome_of_each_error_matches_the_matrix(
    sandbox: Sandbox, proxy: FaultyProxy, clock: FakeClock, is_soak: bool, error: str
) -> None:
    for title, column in some(COLUMNS.items(), list(MATRIX).index(error), STRIDE, is_soak):
        for is_permanent in (False, True):
            print(f"{title}, {'permanent' if is_permanent else 'transient'}")
            assert_cell(Cell(sandbox, proxy, clock, error, column), is_permanent)


@each_module.of_every_module
def test_the_first_request_of_every_module_is_a_read_of_the_matrix(
    sandbox: Sandbox, proxy: FaultyProxy, clock: FakeClock, is_soak: bool, module: ModuleType, options: dict[str, Any]
) -> None:
    number = list(dict(each_module.EACH_MODULE)).index(module)
    is_check = each_module.name_of(module) in each_module.CHANGES
    column = Column("reads", lambda connection, _name: run_main(module, {**connection, **options}, is_check))
    for error, row in some(MATRIX.items(), number, STRIDE_OF_MODULES, is_soak):
        expected = row.first_poll if module is operation_wait else row.reads
        if error == "404" and "project" in options:
            continue  # it may be a name
        # A list without page_size is requested again with another size.
        for is_permanent in (True,) if error in ("400", "422") else (False, True):
            print(f"{error}, {'permanent' if is_permanent else 'transient'}")
            outcome = Cell(sandbox, proxy, clock, error, column).run("", is_permanent)
            if expected.is_retried and not is_permanent:
                assert not outcome.failed, outcome.printed
            else:
                assert expected.kind
                assert_readable_failure(outcome, row, expected.kind, sandbox.api_key)


def assert_cell(cell: Cell, is_permanent: bool) -> None:
    """The task ends as the matrix says."""
    sandbox, column, row = cell.sandbox, cell.column, MATRIX[cell.error]
    expected: Expected = getattr(row, column.expected)
    suffix = {"absent": "-to-revoke", "delete": "-to-delete"}.get(column.expected, "")
    name = ("permanent" if is_permanent else "transient") + suffix
    outcome = cell.run(name, is_permanent)
    if expected.kind is None or (expected.is_retried and not is_permanent):
        assert not outcome.failed, outcome.printed
    else:
        assert_readable_failure(outcome, row, expected.kind, sandbox.api_key)
    assert_attempts(cell, outcome, expected)
    if expected.is_retried:
        assert_retry_after_is_honored(cell)
    if column.expected in ("create", "delete"):
        assert_project_is_as_reported(sandbox, outcome, name, cell.error)
    elif column.method != "GET":
        assert_keys_are_reported(sandbox, cell.proxy, outcome, name)


def assert_readable_failure(outcome: Outcome, row: Row, kind: str, secret: str) -> None:
    """The message is one line of text, the details are structured, and neither has the key or anything of Python's."""
    assert outcome.failed
    message, printed = outcome.result["msg"], outcome.printed
    assert re.fullmatch(r"[ -~]{20,700}", message), message
    assert row.message in message
    assert not re.search(r"Traceback|0x[0-9a-f]{6}|Exception|Error\(|urllib3|<class|HTTPConnection", printed), printed
    assert secret not in printed
    if "failure" in outcome.result:
        failure = outcome.result["failure"]
        assert (failure["kind"], failure.get("status")) == (kind, row.status)
    else:
        assert printed == message, "only the inventory plugin has no details"


def assert_attempts(cell: Cell, outcome: Outcome, expected: Expected) -> None:
    """The number of attempts is the expected one; the proxy does not see connections that are refused."""
    column, is_permanent, is_refused = cell.column, cell.is_permanent, cell.error == REFUSED
    requests = cell.requests + (len(cell.pauses) - column.skip if is_refused and not is_permanent else 0)
    attempts = outcome.result.get("failure", {}).get("attempts", 1)
    if not expected.is_retried:
        assert (requests, attempts) == (1, 1)
    elif is_permanent and cell.error.startswith("423") and column.expected in ("create", "delete"):
        assert requests > 2
    elif column.expected.endswith("_poll"):
        assert attempts == 1
        assert is_refused or cell.requests + column.skip == outcome.result["polls"] > 1 + column.skip
    else:
        # The resource is observed for as long as a list may lag.
        is_observed = expected.kind == "unknown_outcome" and is_permanent
        assert is_observed or len(cell.pauses) == 1
        assert requests == (0 if is_refused and is_permanent else 2)
        assert attempts == (2 if "failure" in outcome.result else 1)


def assert_retry_after_is_honored(cell: Cell) -> None:
    status, _comma, how = cell.error.partition(", Retry-After ")
    spread = backoff.SPREAD_AT_RATE_LIMIT if status == "429" else 0
    pause = cell.pauses[cell.column.skip]
    if how in ("in seconds", "of 100 years"):
        # A wait sleeps until the next poll is due, so the time since the response is not slept again.
        assert -0.5 < pause - min(int(RETRY_AFTER[how]), backoff.MAX_RETRY_AFTER) <= spread
    elif how == "as a date":
        assert 29.5 < pause <= 30 + spread
    else:
        assert 0 <= pause <= backoff.MAX_BACKOFF


def assert_project_is_as_reported(sandbox: Sandbox, outcome: Outcome, name: str, error: str) -> None:
    """The project of this name is there once if the task was to create it and succeeded, or was to delete it and failed."""
    named = [project for project in sandbox.api("GET", "/projects")["projects"] if project["name"] == name]
    assert len(named) == (outcome.failed == name.endswith("-to-delete"))
    # After a 404 to DELETE, it may have been another client's.
    assert outcome.failed or outcome.result["changed"] == (error != "404")
    if "was lost" in outcome.printed:
        actions = [operation["action"] for operation in outcome.result["operations"]]
        assert (outcome.result["json"], actions) == (
            (None, ["delete_tenant"]) if name.endswith("-to-delete") else (None, ["start_compute", "create_timeline"])
        )


def assert_keys_are_reported(sandbox: Sandbox, proxy: FaultyProxy, outcome: Outcome, name: str) -> None:
    """A failure names every active key of the name; the secret is in a successful result, and nowhere else."""
    keys = [key["id"] for key in sandbox.keys(name)]
    if outcome.failed:
        assert outcome.result["failure"].get("key_ids", []) == keys
        assert all(re.search(rf"\b{key_id}\b", outcome.result["msg"]) for key_id in keys)
    elif "key" in outcome.result:
        assert [outcome.result["api_key"]["id"]] == keys
        assert sandbox.accepts(outcome.result["key"])
    else:
        assert (outcome.result["api_key"], keys) == (None, [])
    secrets = [json.loads(body)["key"] for body in proxy.responses if b'"key":' in body]
    assert [secret for secret in secrets if secret in json.dumps(outcome.result)] == (
        [outcome.result["key"]] if "key" in outcome.result else []
    )


def test_every_error_of_the_matrix_is_tested() -> None:
    assert MATRIX.keys() == ERRORS.keys() | {REFUSED}


def test_the_page_has_every_column_and_names_the_tasks_that_are_tested() -> None:
    assert tuple(matrix.COLUMNS) == Row._fields[Row._fields.index("present") :]
    tested: dict[str, set[str]] = {column: set() for column in matrix.COLUMNS}
    for name, column in COLUMNS.items():
        tested[column.expected].add(name.split()[0])
    headings = {column: set(re.findall(r"``(\w+)``", heading)) - {"find"} for column, heading in matrix.COLUMNS.items()}
    assert headings == tested
