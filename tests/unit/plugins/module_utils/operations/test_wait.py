# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for many operations in many projects, and with slow services, the progress that they write, and how they fail."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.message import Request
from ansible_collections.clouddb.control.plugins.module_utils._operations import progress as progress_file
from ansible_collections.clouddb.control.plugins.module_utils._operations import wait as waiting
from ansible_collections.clouddb.control.plugins.module_utils._operations.operations import OperationRef
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import FAILED, SUCCEEDED
from ansible_collections.clouddb.control.tests.unit.support.progress import Progress
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import Account, Operation

OPTIONS = waiting.WaitOptions(timeout=60.0, interval=5.0, failed_grace=0.0, workers=4)
Wanted = Union[list[OperationRef], str]  # operations, or all of a project


def account_with(
    *statuses: tuple[float, str],
    projects: int = 1,
    operations: int = 1,
    others: Mapping[str, tuple[float, str]] = MappingProxyType({}),
) -> tuple[Account, list[OperationRef]]:
    """Projects whose operations, the newest first, run until they get these statuses at these times, or those of C(others)."""
    account = Account(*(f"project-{project}" for project in range(projects)))
    each = [(project, number) for project in range(projects) for number in range(operations)]
    refs = [OperationRef(f"project-{project}", f"p{project}-op{number}") for project, number in each]
    for ref in reversed(refs):
        later = [others[ref.id]] if ref.id in others else statuses
        account.add(ref.project_id, ref.id, (0.0, "running"), *later)
    return account, refs


def limit_rate(account: Account, requests: int) -> None:
    """Accept this number of requests after each pause and refuse the others."""
    since_pause: Counter[int] = Counter()

    def fault(_moment: float, _path: str) -> tuple[int, float] | None:
        since_pause[len(account.clock.pauses)] += 1
        return (429, 1.0) if since_pause[len(account.clock.pauses)] > requests else None

    account.fault = fault


def wait_for(account: Account, wanted: Wanted, seconds: float = 0.0, **limits: Any) -> dict[str, Any]:
    """The result of a wait that begins now and whose requests take C(seconds)."""
    account.seconds_per_request = seconds
    wait = waiting.Wait(account.client(), OPTIONS._replace(**limits))
    if isinstance(wanted, str):
        wait.unlisted, wait.lookback = wanted, 0
    else:
        wait.operations = dict.fromkeys(wanted)
    with account.serving():
        return wait.run()


def failing(account: Account, wanted: Wanted, seconds: float = 0.0, **limits: Any) -> waiting.WaitFailed:
    with pytest.raises(waiting.WaitFailed) as error:
        wait_for(account, wanted, seconds, **limits)
    return error.value


def statuses(result: dict[str, Any]) -> Counter[str]:
    """The number of operations in each status."""
    return Counter(operation["status"] for operation in result["operations"])


def test_each_poll_is_one_request_per_project() -> None:
    account, refs = account_with((20, "finished"), projects=10, operations=30)
    result = wait_for(account, refs)
    assert statuses(result) == {"finished": 300}
    assert [OperationRef(operation["project_id"], operation["id"]) for operation in result["operations"]] == refs
    paths = [f"/projects/project-{number}/operations" for number in range(10)]
    assert Counter(path for _moment, path in account.sent) == dict.fromkeys(paths, result["polls"])


# When the polls are sent


@pytest.mark.parametrize("timeout, interval", [(0.0, 5.0), (7.3, 5.0), (300, 5.0), (300, 1000.0)])
def test_the_last_poll_is_at_the_deadline(timeout: float, interval: float) -> None:
    account, refs = account_with()
    failing(account, refs, interval=interval, timeout=timeout)
    pauses = account.clock.pauses
    assert account.clock.elapsed == pytest.approx(timeout)
    assert len(pauses) == len(account.sent) - 1
    assert pauses[:-1] == pytest.approx([waiting.poll_interval(polls, interval) for polls in range(1, len(pauses))])


@pytest.mark.parametrize(
    ("retry_after", "pauses"), [(25.0, [25, 25, 10]), (0.001, [0.5, 0.625, 0.78125])], ids=["longer", "shorter"]
)
def test_retry_after_can_only_lengthen_an_interval(retry_after: float, pauses: list[float]) -> None:
    account, refs = account_with()
    account.fault = lambda moment, path: (429, retry_after)
    failing(account, refs)
    assert account.clock.pauses[:3] == pytest.approx(pauses)
    assert sum(account.clock.pauses) == pytest.approx(60)


# The deadline


@pytest.mark.parametrize("seconds", [0.4, 1000.0], ids=lambda seconds: f"{seconds:g} s each")
@pytest.mark.parametrize("operations", [1, 5])
def test_slow_responses_do_not_delay_the_deadline(operations: int, seconds: float) -> None:
    account, refs = account_with(operations=operations)
    assert len(failing(account, refs, seconds).result["pending_ids"]) == operations
    assert 60 <= account.clock.elapsed <= 61.001


def test_an_operation_that_finishes_during_the_last_poll_is_recorded() -> None:
    account, refs = account_with((60.05, "finished"))
    assert statuses(wait_for(account, refs, seconds=0.1)) == {"finished": 1}


def test_a_long_history_does_not_delay_the_deadline() -> None:
    account, _refs = account_with(operations=4000)
    failing(account, "project-0", seconds=1.8)
    assert account.clock.elapsed <= 61.001


# Requests that fail


def test_after_a_429_the_rest_of_the_poll_is_not_sent() -> None:
    account, refs = account_with(projects=10, operations=2)
    limit_rate(account, 3)
    error = failing(account, refs, workers=1)
    assert len(account.sent) == 4 * error.result["polls"]
    assert (error.details["status"], statuses(error.result)) == (429, {"running": 20})


def test_under_a_rate_limit_every_operation_of_a_project_is_polled_in_turn() -> None:
    """Three hundred of one project, none of which is among the newest ones, and one of another project."""
    account, refs = account_with(projects=2, operations=400, others={"p0-op380": (1, "failed")})
    limit_rate(account, 40)
    error = failing(account, [*refs[100:400], refs[400]], workers=1)
    assert error.result["failed_ids"] == ["p0-op380"]
    assert account.clock.elapsed <= 20


def test_an_operation_that_is_deleted_during_the_wait_aborts_it() -> None:
    account, refs = account_with(projects=2, operations=3, others={"p1-op2": (5, "failed")})

    def delete(moment: float, _path: str) -> None:
        operations = account.operations["project-0"]
        if moment > 10:
            operations[:] = [operation for operation in operations if operation.id != "p0-op1"]

    account.fault = delete
    error = failing(account, refs, failed_grace=30.0)
    assert 10 < account.clock.elapsed < 17
    assert (error.kind, error.details["path"]) == ("not_found", "/projects/project-0/operations/p0-op1")
    assert (error.result["failed_ids"], len(error.result["pending_ids"])) == ([], 6)
    assert [operation["status"] for operation in error.result["operations"]] == ["running"] * 5 + ["failed"]


def test_other_threads_may_record_operations_while_a_404_is_classified() -> None:
    refs = [OperationRef("proj-1", f"op-{number}") for number in range(3)]
    wait = waiting.Wait(Account().client(), OPTIONS)
    wait.operations = dict.fromkeys(refs)
    wait.record(refs[0], {"id": "op-0", "status": "running"})

    class Path(str):
        def endswith(self, *suffix: Any) -> bool:
            wait.record(refs[1], {"id": "op-1", "status": "running"})
            return super().endswith(*suffix)

    assert wait.may_be_unknown(Path("/projects/proj-1/operations/op-2"))
    assert not wait.may_be_unknown(Path("/projects/proj-1/operations/op-1"))


def test_an_operation_that_a_response_has_named_may_be_missing_until_a_poll_finds_it() -> None:
    wait = waiting.Wait(Account().client(), OPTIONS)
    wait.expect({"id": "op-1", "project_id": "proj-1", "status": "running"})
    assert wait.may_be_unknown("/projects/proj-1/operations/op-1")
    wait.record(OperationRef("proj-1", "op-1"), {"id": "op-1", "status": "running"})
    assert not wait.may_be_unknown("/projects/proj-1/operations/op-1")


# The lines for the action plugin


def test_each_status_change_is_a_line_that_counts_what_is_done(progress: Progress) -> None:
    account, refs = account_with((9, "skipped"), operations=3, others={"p0-op0": (3, "skipped")})
    wait_for(account, refs)
    lines = progress()
    assert [line.split(" ")[3] for line in lines] == ["p0-op0", "p0-op1", "p0-op2"]
    assert [line.rpartition(" · ")[2] for line in lines] == ["1 of 3 done", "2 of 3 done", "3 of 3 done"]
    assert all(line.startswith("clouddb: project-0 ") and " running → skipped (" in line for line in lines)


def test_a_failed_wait_shows_its_last_changes(progress: Progress) -> None:
    failing(*account_with((1, "failed")))
    [line] = progress()
    assert "running → failed" in line and line.endswith("0 of 1 done")


def test_a_minute_of_silence_is_followed_by_what_the_task_waits_for(progress: Progress) -> None:
    wait_for(*account_with((100, "finished"), operations=2), timeout=300.0)
    waiting, *_changes = progress()
    assert waiting.startswith("clouddb: waiting for 2 of 2 operations (6") and "including project-0 " in waiting
    assert waiting.endswith(" p0-op0 running")


@pytest.mark.parametrize("pipe", [None, "missing", "full", "unread"])
def test_a_wait_ends_as_always_if_nobody_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pipe: str) -> None:
    path = tmp_path / "pipe"
    monkeypatch.delenv(progress_file.VARIABLE, raising=False)
    if pipe:
        monkeypatch.setenv(progress_file.VARIABLE, str(path))
    if pipe in ("full", "unread"):
        os.mkfifo(path)
    reader = os.open(path, os.O_RDWR | os.O_NONBLOCK) if pipe == "full" else os.open(os.devnull, os.O_RDWR)
    while pipe == "full":
        try:
            os.write(reader, b"x" * 4096)
        except BlockingIOError:
            break
    assert statuses(wait_for(*account_with((10, "finished")))) == {"finished": 1}
    os.close(reader)


def test_values_of_the_service_cannot_control_the_terminal(progress: Progress) -> None:
    wait_for(*account_with((1, "x\x1b[2J\ny"), (9, "finished")))
    lines = progress()
    assert len(lines) == 2 and all(line.isprintable() for line in lines)


# The messages of waits that fail


UNAVAILABLE = StatusError("The service responded 503", Request("GET", "/x", "r"), 1, 503)
MET_503 = "The last poll met an error: The service responded 503."
CONTINUE = "Unfinished operations continue on the service. Run the task again, or increase timeout."
RUNNING_1, FAILED_1 = "operation op-1 of shop is running", "operation op-1 of shop is failed"


def wait_of(*statuses: str | None, **fields: Any) -> waiting.Wait:
    """A wait of a minute for operations with these statuses (None: not polled)."""
    refs = [OperationRef("shop", f"op-{number}") for number in range(1, len(statuses) + 1)]
    wait = waiting.Wait(Account().client(), OPTIONS)
    wait.operations = dict.fromkeys(refs)
    for ref, status in zip(refs, statuses):
        if status:
            wait.record(ref, {"id": ref.id, "status": status, **fields})
    return wait


@pytest.mark.parametrize(
    "operation, text",
    [
        *((operation, FAILED_1) for operation in ({}, {"error": ""})),
        ({"error": ".disk is full."}, f"{FAILED_1}: .disk is full"),
        ({"failures_count": 0, "error": "full"}, f"{FAILED_1} (failures_count 0): full"),
        ({"action": "a" * 101}, f"{'a' * 99}… op-1 of shop is failed"),
        ({"failures_count": "9" * 21}, f"{FAILED_1} (failures_count {'9' * 19}…)"),
    ],
)
def test_description_of_an_operation(operation: dict[str, Any], text: str) -> None:
    wait = wait_of("failed", **operation)
    assert str(wait.operations_failed(wait.failed(0))) == f"1 of 1 operation failed: {text}."


@pytest.mark.parametrize(
    "number, last", [(20, "operation op-20 of shop is failed."), (21, "and 1 more (see operations).")]
)
def test_twenty_operations_are_described(number: int, last: str) -> None:
    wait = wait_of(*["failed"] * number)
    first, *_others, shown_last = str(wait.operations_failed(wait.failed(0))).split("; ")
    assert (first, shown_last) == (f"{number} of {number} operations failed: {FAILED_1}", last)


@pytest.mark.parametrize(
    "statuses, error, message",
    [
        (["running", "finished"], None, f"1 of 2 operations unfinished: {RUNNING_1}. {CONTINUE}"),
        (
            ["running", None],
            UNAVAILABLE,
            f"2 of 2 operations unfinished: {RUNNING_1}; operation op-2 of shop could not be polled. {MET_503}",
        ),
        (["failed"], None, f"1 of 1 operation failed: {FAILED_1}."),
        (
            ["running", "failed"],
            None,
            "1 of 2 operations unfinished and 1 of 2 operations failed: operation op-2 of shop is failed; "
            f"{RUNNING_1}. {CONTINUE}",
        ),
    ],
)
def test_message_at_the_deadline(statuses: list[str | None], error: StatusError | None, message: str) -> None:
    failure = wait_of(*statuses).timed_out(error)
    assert str(failure) == f"Timed out after 60 s with {message}"
    assert failure.kind == (error.kind if error else "wait_failed")


def test_operations_that_were_never_listed() -> None:
    wait = waiting.Wait(Account().client(), OPTIONS)
    wait.unlisted = "shop"
    message = "Timed out after 60 s before the unfinished operations of shop could be listed."
    assert str(wait.timed_out(None)) == message
    assert str(wait.timed_out(UNAVAILABLE)) == f"{message} {MET_503}"


# The result agrees with what happens to the operations, whatever requests fail, and the deadline holds


PROJECTS = ("project-a", "project-b")
LATENCY = 0.1
INTERVAL = 5.0


class Plan(NamedTuple):
    """An operation, its project, and when the service no longer has it, in seconds since the wait began; None: never."""

    project: str
    operation: Operation
    vanishes_at: float | None

    def outlives(self, moment: float) -> bool:
        return self.vanishes_at is None or self.vanishes_at > moment


@st.composite
def plans(draw: st.DrawFn, number: int) -> Plan:
    """An operation that moves, may fail and be retried, and ends or hangs."""
    moment = -1.0
    statuses = [(moment, "scheduling")]
    for status in draw(st.lists(st.sampled_from(["running", "failed"]), max_size=4)):
        moment += draw(st.floats(0.2, 30))
        if statuses[-1][1] != status:
            statuses.append((moment, status))
    if (last := draw(st.sampled_from([None, "finished", "finished", "skipped", "error", "cancelled"]))) is not None:
        statuses.append((moment + draw(st.floats(0.2, 30)), last))
    vanishes_at = draw(st.none() | st.none() | st.floats(0, 60))
    return Plan(draw(st.sampled_from(PROJECTS)), Operation(f"operation-{number}", statuses), vanishes_at)


def account_of(operations: Iterable[Plan], failing: set[int]) -> Account:
    """An account with these operations, of which the requests of these numbers fail."""

    def fault(moment: float, _path: str) -> str | None:
        if len(account.sent) - 1 in failing:
            return "cut off"
        for plan in operations:
            if not plan.outlives(moment) and plan.operation in account.operations[plan.project]:
                account.operations[plan.project].remove(plan.operation)
        return None

    account = Account(*PROJECTS)
    account.fault, account.seconds_per_request = fault, LATENCY
    for plan in operations:
        account.operations[plan.project].append(plan.operation)
    return account


several_plans = st.integers(1, 4).flatmap(lambda number: st.tuples(*(plans(each) for each in range(number))))


@given(several_plans, st.sets(st.integers(0, 12), max_size=6), st.sampled_from([0.0, 3.0, 20.0]), st.floats(1, 200))
def test_result_agrees_with_the_operations(
    operations: tuple[Plan, ...], failing: set[int], failed_grace: float, timeout: float
) -> None:
    account = account_of(operations, failing)
    wait = waiting.Wait(account.client(), waiting.WaitOptions(timeout, INTERVAL, failed_grace))
    wait.operations = dict.fromkeys(OperationRef(plan.project, plan.operation.id) for plan in operations)
    failure: waiting.WaitFailed | None = None
    try:
        with account.serving():
            result = wait.run()
    except waiting.WaitFailed as error:
        result, failure = error.result, error
    end = account.clock.elapsed
    by_id = {plan.operation.id: plan for plan in operations}

    # The deadline holds: the last poll begins before it. Each poll takes two requests per operation at most.
    longest_poll = 2 * len(operations) * LATENCY
    assert account.sent[-1][0] <= timeout + longest_poll
    assert end <= timeout + longest_poll + waiting.LAST_POLL_SECONDS

    # No state is invented, and each operation has one.
    assert [operation["id"] for operation in result["operations"]] == list(by_id)
    for operation in result["operations"]:
        if operation["status"] is not None:
            statuses = by_id[operation["id"]].operation.statuses
            moments = {account.timestamp(moment): status for moment, status in statuses}
            assert moments[operation["updated_at"]] == operation["status"]
    last_known = {operation["id"]: operation["status"] for operation in result["operations"]}

    if failure is None:
        assert set(last_known.values()) <= SUCCEEDED
        return
    assert not set(last_known.values()) <= SUCCEEDED
    # Each operation that has not succeeded is in one of the lists.
    listed = [*result["failed_ids"], *result["pending_ids"]]
    assert sorted(listed) == sorted(name for name, status in last_known.items() if status not in SUCCEEDED)
    assert all(last_known[name] in FAILED for name in result["failed_ids"])
    if failure.kind == "not_found":
        assert any(not plan.outlives(end) for plan in operations)
    elif round(end, 6) < timeout:
        assert result["failed_ids"]
        for name in result["failed_ids"]:
            first_failed = min(moment for moment, status in by_id[name].operation.statuses if status in FAILED)
            has_grace = last_known[name] == "failed"
            assert end >= max(0.0, first_failed) + (failed_grace if has_grace else 0.0)
    else:
        # What had succeeded well before the deadline is known to have.
        for name, plan in by_id.items():
            moment, status = plan.operation.statuses[-1]
            was_polled = not failing and plan.outlives(timeout) and moment < timeout - INTERVAL - longest_poll
            assert status not in SUCCEEDED or not was_polled or last_known[name] in SUCCEEDED
