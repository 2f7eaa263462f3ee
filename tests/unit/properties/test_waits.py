# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a wait agrees with what happens to its operations, whatever requests fail, and the deadline holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import ServiceUnreachable
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request
from ansible_collections.clouddb.control.plugins.module_utils._operations.status import FAILED, SUCCEEDED
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait import LAST_POLL_SECONDS, Limits, Wait
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_failure import WaitFailed
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import OperationRef, WaitState
from ansible_collections.clouddb.control.tests.unit.support.simulated_operations import (
    OperationsClient,
    SimulatedOperation,
    SimulatedOperations,
)

PROJECTS = ("project-a", "project-b")
LATENCY = 0.1
INTERVAL = 5.0


class Plan(NamedTuple):
    """An operation, its project, and when the service no longer has it, in seconds since the wait began; None: never."""

    project: str
    operation: SimulatedOperation
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
    operation = SimulatedOperation(f"operation-{number}", "create_branch", statuses)
    return Plan(draw(st.sampled_from(PROJECTS)), operation, vanishes_at)


def account_with(operations: Iterable[Plan], failing: set[int]) -> SimulatedOperations:
    """An account with these operations, of which the requests of these numbers fail."""

    def before_request(path: str) -> None:
        if len(account.sent) - 1 in failing:
            raise ServiceUnreachable("It failed.", Request("GET", "/", "request"), 1, True, True)
        for plan in operations:
            if not plan.outlives(account.clock.elapsed) and plan.operation in account.operations[plan.project]:
                account.operations[plan.project].remove(plan.operation)

    account = SimulatedOperations(before_request)
    for project in PROJECTS:
        account.add_project(project)
    for plan in operations:
        account.add_operation(plan.project, plan.operation)
    return account


@given(
    st.integers(1, 4).flatmap(lambda number: st.tuples(*(plans(each) for each in range(number)))),
    st.sets(st.integers(0, 12), max_size=6),
    st.sampled_from([0.0, 3.0, 20.0]),
    st.floats(1, 200),
)
def test_result_agrees_with_the_operations(
    operations: tuple[Plan, ...], failing: set[int], failed_grace: float, timeout: float
) -> None:
    account = account_with(operations, failing)
    client = OperationsClient(account, LATENCY)
    refs = [OperationRef(plan.project, plan.operation.id) for plan in operations]
    state = WaitState(client.clock, timeout, refs)
    failure: WaitFailed | None = None
    try:
        result = Wait(client, Limits(timeout, INTERVAL, failed_grace), state).run()
    except WaitFailed as error:
        result, failure = error.result, error
    end = account.clock.elapsed
    by_id = {plan.operation.id: plan for plan in operations}

    # The deadline holds: the last poll begins before it. Each poll takes two requests per operation at most.
    longest_poll = 2 * len(operations) * LATENCY
    assert account.sent[-1][0] <= timeout + longest_poll
    assert end <= timeout + longest_poll + LAST_POLL_SECONDS

    # No state is invented, and each operation has one.
    assert [operation["id"] for operation in result["operations"]] == list(by_id)
    for operation in result["operations"]:
        if operation["status"] is not None:
            moments = {
                account._timestamp(moment): status for moment, status in by_id[operation["id"]].operation.statuses
            }
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
            if (
                status in SUCCEEDED
                and not failing
                and plan.outlives(timeout)
                and moment < timeout - INTERVAL - longest_poll
            ):
                assert last_known[name] in SUCCEEDED
