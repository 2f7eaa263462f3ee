# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every fault of the matrix with every module, through its real main(), over a real socket: once a fault that passes, once one that stays."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
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

from ansible_collections.clouddb.control.plugins.module_utils._http.backoff import MAX_BACKOFF, MAX_RETRY_AFTER
from ansible_collections.clouddb.control.plugins.modules import (
    api_key,
    api_key_info,
    operation_info,
    operation_wait,
    project_info,
)
from ansible_collections.clouddb.control.tests.unit.plugins.faults.hasty_clock import HastyClock
from ansible_collections.clouddb.control.tests.unit.plugins.faults.matrix import MATRIX, Outcome, Row, page
from ansible_collections.clouddb.control.tests.unit.plugins.faults.plays import PLAYS, RETRY_AFTER
from ansible_collections.clouddb.control.tests.unit.plugins.faults.wire import Wire
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox

SHOP = "wispy-lake-12345678"
PAGE = Path(__file__).parents[4] / "docs" / "docsite" / "rst" / "fault_matrix.rst"
REFUSED = "connection refused"
FOREVER = 1000


class Told(NamedTuple):
    """What is to be seen of a task or of an inventory: its C(result), and all that was C(printed)."""

    result: dict[str, Any]
    printed: str

    @property
    def failed(self) -> bool:
        return bool(self.result.get("failed"))


Run = Callable[[dict[str, Any], str], Told]


class Column(NamedTuple):
    """A task with the connection options and the name of a key or operation, and which of its requests meets the fault."""

    outcome: str
    run: Run
    method: str = "GET"
    passed_first: int = 0


def task(module: ModuleType, **options: Any) -> Run:
    """The module with these options; one that is C(...) is the name."""

    def run(connection: dict[str, Any], name: str) -> Told:
        ended = run_main(
            module, {**connection, **{option: name if value is ... else value for option, value in options.items()}}
        )
        return Told(ended.result, ended.printed)

    return run


def wait(operation_id: Any) -> Run:
    """The wait for an operation, long enough for several looks."""

    def run(connection: dict[str, Any], name: str) -> Told:
        # A fault that stays is waited for in real time; one that passes leaves a busy machine all the time it needs.
        timeout = 200 if name == "passes" else min(4 * connection["api_timeout"], 200)
        return task(operation_wait, project_id=SHOP, operation_id=operation_id, timeout=timeout, interval=100)(
            connection, name
        )

    return run


def inventory(connection: dict[str, Any], name: str) -> Told:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "test.clouddb.yml"
        path.write_text(yaml.safe_dump({"plugin": "clouddb.control.projects", **connection}))
        try:
            inventory_loader.get("clouddb.control.projects").parse(InventoryData(), DataLoader(), str(path))
        except AnsibleParserError as error:
            return Told({"failed": True, "msg": error.message}, error.message)
    return Told({}, "")


COLUMNS = {
    "api_key present": Column("present", task(api_key, name=...), "POST"),
    "api_key absent": Column("absent", task(api_key, name=..., state="absent"), "DELETE"),
    "api_key_info": Column("reads", task(api_key_info)),
    "project_info": Column("reads", task(project_info)),
    "operation_info": Column("reads", task(operation_info, project_id=SHOP)),
    "projects": Column("reads", inventory),
    "operation_wait at first": Column("first_look", wait("done")),
    "operation_wait later": Column("later_look", wait(...), passed_first=1),
}


@pytest.fixture
def seed() -> dict[str, Any]:
    """A key to revoke and an operation to wait for, once for the fault that passes and once for the one that stays."""
    ends = {"passes": 100, "stays": 1_000_000}
    going = [
        {"id": name, "action": "create_branch", "age": "1m", "timeline": [[0, "running"], [end, "finished"]]}
        for name, end in ends.items()
    ]
    done = {"id": "done", "action": "start_compute", "age": "1h"}
    return {
        "api_keys": [{"name": f"{name}-to-revoke"} for name in ("passes", "stays")],
        "projects": [{"id": SHOP, "compute": False, "operations": [*going, done]}],
    }


class Met(NamedTuple):
    """How a task met a fault: what came of it, how many requests there were of the kind that the fault hits, and the pauses."""

    told: Told
    requests: int
    pauses: list[float]


class Scene:
    """A sandbox behind a wire on which a fault is played."""

    def __init__(self, sandbox: Sandbox, wire: Wire, clock: HastyClock, fault: str, column: Column):
        self.sandbox, self.wire, self.clock, self.fault, self.column = sandbox, wire, clock, fault, column
        # Silence is waited for in real time, which is short, but not too short for a good answer on a busy machine.
        self.patience = max(0.6, 20 * self._seconds_for_an_answer()) if re.search("silence|drip", fault) else 60

    def _seconds_for_an_answer(self) -> float:
        through_the_wire = Sandbox(self.wire.base_url)
        through_the_wire.api("GET", "/api_keys")
        started = time.monotonic()
        through_the_wire.api("GET", "/api_keys")
        return time.monotonic() - started

    def meet(self, stays: bool, name: str) -> Met:
        """Run the task while the fault passes, or stays."""
        column, pauses_before = self.column, len(self.clock.pauses)
        if self.fault == REFUSED:
            self.wire.refuse(after=column.passed_first + (column.method != "GET"))
        else:
            self.wire.hit(PLAYS[self.fault], column.method, FOREVER if stays else 1, column.passed_first)
        self.clock.on_sleep = partial(self._go_on, pauses_before + 1 + column.passed_first, stays)
        connection = {
            "base_url": self.wire.base_url,
            "api_key": self.sandbox.api_key,
            "api_timeout": self.patience,
            "api_retries": 1,
        }
        told = column.run(connection, name)
        if stays and self.fault == REFUSED:
            self.wire.listen_again()
        return Met(told, self.wire.times_sent(column.method) - column.passed_first, self.clock.pauses[pauses_before:])

    def _go_on(self, pauses_with_fault: int, stays: bool) -> None:
        """In a pause of the task: what passes has passed."""
        if stays:
            return
        if self.fault == REFUSED and len(self.clock.pauses) == pauses_with_fault:
            self.wire.listen_again()
        if self.column.outcome == "later_look":
            self.sandbox.advance(50)


# Nobody can tell these two from each other by a request that only reads, and each takes its time.
CELLS = [
    pytest.param(fault, column, id=f"{fault}, {name}")
    for fault in MATRIX
    for name, column in COLUMNS.items()
    if fault != "silence after the service acted" or column.method != "GET"
]


@pytest.mark.parametrize(("fault", "column"), CELLS)
def test_outcome_of_each_error_matches_the_matrix(
    sandbox: Sandbox, wire: Wire, clock: HastyClock, fault: str, column: Column
) -> None:
    row = MATRIX[fault]
    outcome: Outcome = getattr(row, column.outcome)
    scene = Scene(sandbox, wire, clock, fault, column)
    for stays in (False, True):
        name = ("stays" if stays else "passes") + ("-to-revoke" if column.outcome == "absent" else "")
        met = scene.meet(stays, name)
        if outcome.kind is None or (outcome.asks_again and not stays):
            assert not met.told.failed, met.told.printed
        else:
            assert_failed_readably(met.told, row, outcome.kind, sandbox.api_key)
        assert_asked_often_enough(met, column, outcome, stays, fault)
        if outcome.asks_again:
            assert_kept_to_retry_after(met, column, fault)
        if column.method != "GET":
            assert_every_key_is_accounted_for(sandbox, wire, met.told, name)


def assert_failed_readably(told: Told, row: Row, kind: str, secret: str) -> None:
    """One sentence for people, details for programs, and nothing of Python or of the key in either."""
    assert told.failed
    message = told.result["msg"]
    assert re.fullmatch(r"[ -~]{20,700}", message), message
    assert row.says in message
    assert not re.search(r"Traceback|0x[0-9a-f]{6}|Exception|Error\(|urllib3|<class|HTTPConnection", told.printed), (
        told.printed
    )
    assert secret not in told.printed
    if "failure" in told.result:
        failure = told.result["failure"]
        assert (failure["kind"], failure.get("status")) == (kind, row.status)
    else:
        assert told.printed == message, "only an inventory has no details"


def assert_asked_often_enough(met: Met, column: Column, outcome: Outcome, stays: bool, fault: str) -> None:
    """As often as it may and no more; nobody can count connections that are refused."""
    requests = met.requests + (len(met.pauses) - column.passed_first if fault == REFUSED and not stays else 0)
    attempts = met.told.result.get("failure", {}).get("attempts", 1)
    if not outcome.asks_again:
        assert (requests, attempts) == (1, 1)
    elif column.outcome.endswith("_look"):
        assert attempts == 1
        if fault != REFUSED:
            assert met.requests + column.passed_first == met.told.result["polls"] > 1 + column.passed_first
    else:
        assert len(met.pauses) == 1
        assert requests == (0 if fault == REFUSED and stays else 2)
        assert attempts == (2 if "failure" in met.told.result else 1)


def assert_kept_to_retry_after(met: Met, column: Column, fault: str) -> None:
    _status, _comma, how = fault.partition(", Retry-After ")
    pause = met.pauses[column.passed_first]
    if how in ("in seconds", "of years"):
        # A wait sleeps until the next poll is due, so the time since the response is not slept again.
        assert -0.5 < pause - min(RETRY_AFTER[how], MAX_RETRY_AFTER) <= 0
    elif how == "as a date":
        assert 20 < pause <= 30
    else:
        assert 0 <= pause <= MAX_BACKOFF


def assert_every_key_is_accounted_for(sandbox: Sandbox, wire: Wire, told: Told, name: str) -> None:
    """What the task says of its key is true; the key's secret is in a good result, and nowhere else."""
    keys = [key["id"] for key in sandbox.keys(name)]
    if told.failed:
        assert told.result["failure"].get("key_ids", []) == keys
        assert all(re.search(rf"\b{key_id}\b", told.result["msg"]) for key_id in keys)
    elif "key" in told.result:
        assert [told.result["api_key"]["id"]] == keys
        assert sandbox.accepts(told.result["key"])
    else:
        assert (told.result["api_key"], keys) == (None, [])
    secrets = [json.loads(response.body)["key"] for response in wire.answers if b'"key":' in response.body]
    assert [secret for secret in secrets if secret in told.printed] == (
        [told.result["key"]] if "key" in told.result else []
    )


def test_every_error_of_the_matrix_is_tested() -> None:
    assert MATRIX.keys() == PLAYS.keys() | {REFUSED}
    assert len(CELLS) > 250


def test_the_page_matches_the_matrix() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "tests/unit/plugins/faults/matrix.py writes it"
