# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The messages of waits that fail, and what the task returns with them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.session import Request
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_failure import (
    operations_failed,
    timed_out,
)
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import (
    OperationRef,
    UnfinishedOperations,
    WaitState,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock

UNAVAILABLE = StatusError("The service responded 503", Request("GET", "/x", "r"), 1, 503)


def state_of(*statuses: str | None, **fields: Any) -> WaitState:
    """A wait of a minute for operations with these statuses (None: not polled)."""
    refs = [OperationRef("shop", f"op-{number}") for number in range(1, len(statuses) + 1)]
    state = WaitState(FakeClock().clock, 60.0, refs)
    for ref, status in zip(refs, statuses):
        if status:
            state.record(ref, {"id": ref.id, "status": status, **fields})
    return state


@pytest.mark.parametrize(
    "operation, text",
    [
        ({}, "operation op-1 of shop is failed"),
        ({"error": ".disk is full."}, "operation op-1 of shop is failed: .disk is full"),
        ({"error": ""}, "operation op-1 of shop is failed"),
        ({"failures_count": 0, "error": "full"}, "operation op-1 of shop is failed (failures_count 0): full"),
        ({"action": "a" * 101}, f"{'a' * 99}… op-1 of shop is failed"),
        ({"failures_count": "9" * 21}, f"operation op-1 of shop is failed (failures_count {'9' * 19}…)"),
    ],
)
def test_description_of_an_operation(operation: dict[str, Any], text: str) -> None:
    state = state_of("failed", **operation)
    assert str(operations_failed(state, state.failed(0))) == f"1 of 1 operation failed: {text}."


@pytest.mark.parametrize(
    "number, last", [(20, "operation op-20 of shop is failed."), (21, "and 1 more (see operations).")]
)
def test_twenty_operations_are_described(number: int, last: str) -> None:
    state = state_of(*["failed"] * number)
    texts = str(operations_failed(state, state.failed(0))).split("; ")
    assert (texts[0], texts[-1]) == (
        f"{number} of {number} operations failed: operation op-1 of shop is failed",
        last,
    )


@pytest.mark.parametrize(
    "statuses, error, message",
    [
        (
            ["running", "finished"],
            None,
            " with 1 of 2 operations unfinished: operation op-1 of shop is running. Unfinished operations continue on the "
            "service. Run the task again, or increase timeout.",
        ),
        (
            ["running", None],
            UNAVAILABLE,
            " with 2 of 2 operations unfinished: operation op-1 of shop is running; operation op-2 of shop could not be "
            "polled. The last poll met an error: The service responded 503.",
        ),
        (["failed"], None, " with 1 of 1 operation failed: operation op-1 of shop is failed."),
        (
            ["running", "failed"],
            None,
            " with 1 of 2 operations unfinished and 1 of 2 operations failed: operation op-2 of shop is failed; operation op-1 of shop "
            "is running. Unfinished operations continue on the service. Run the task again, or increase timeout.",
        ),
    ],
)
def test_message_at_the_deadline(statuses: list[str | None], error: StatusError | None, message: str) -> None:
    failure = timed_out(state_of(*statuses), error, 60.0)
    assert str(failure) == f"Timed out after 60 s{message}"
    assert failure.kind == (error.kind if error else "wait_failed")


def test_operations_that_were_never_listed() -> None:
    state = WaitState(FakeClock().clock, 60.0, (), UnfinishedOperations("shop", 0.0))
    message = "Timed out after 60 s before the unfinished operations of shop could be listed."
    assert str(timed_out(state, None, 60.0)) == message
    assert (
        str(timed_out(state, UNAVAILABLE, 60.0)) == f"{message} The last poll met an error: The service responded 503."
    )
