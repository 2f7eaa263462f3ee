# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways in which a wait can fail: the message of each, and what the task returns with it. Keeps P3 and P11."""

from __future__ import annotations

from collections.abc import Sequence

from .._errors import ClouddbError, sentence
from .._http.errors import RequestFailed
from .._untrusted import displayable
from .wait_state import OperationRef, WaitState

MAX_DESCRIBED = 20


class WaitFailed(ClouddbError):
    """Operations failed, the deadline passed, or an error aborted the wait. C(result) holds the last known states."""


def operations_failed(state: WaitState, failed: Sequence[OperationRef]) -> WaitFailed:
    """At least one operation has failed."""
    return _wait_failed(f"{_count(failed, state)} failed: {_describe(failed, state)}.", state, failed)


def timed_out(state: WaitState, error: RequestFailed | None, timeout: float) -> WaitFailed:
    """The deadline has passed; C(error) is one that the last poll met. C(timeout): the task's, which may do more than wait."""
    failed = state.failed(grace=0)
    unfinished = [ref for ref in state.awaited() if ref not in failed]
    after = f"Timed out after {round(timeout, 1):g} s"
    if state.unlisted:
        message = f"{after} before the unfinished operations of {state.unlisted.project_id} could be listed."
    else:
        counts = [
            f"{_count(refs, state)} {how}" for refs, how in ((unfinished, "unfinished"), (failed, "failed")) if refs
        ]
        message = f"{after} with {' and '.join(counts)}: {_describe([*failed, *unfinished], state)}."
    if error:
        message += f" The last poll met an error: {sentence(error)}"
    elif unfinished:
        message += " Unfinished operations continue on the service. Run the task again, or increase timeout."
    return _wait_failed(message, state, failed, error)


def aborted(state: WaitState, failed: Sequence[OperationRef], error: RequestFailed) -> WaitFailed:
    """An error that the next poll would meet again."""
    return _wait_failed(f"The wait stopped at a permanent error: {sentence(error)}", state, failed, error)


def _wait_failed(
    message: str, state: WaitState, failed: Sequence[OperationRef], error: RequestFailed | None = None
) -> WaitFailed:
    ids = {
        "failed_ids": [ref.id for ref in failed],
        "pending_ids": [ref.id for ref in state.awaited() if ref not in failed],
    }
    kind, details = (error.kind, error.details) if error else ("wait_failed", {})
    return WaitFailed(kind, message, details, {**state.result(), **ids})


def _count(refs: Sequence[OperationRef], state: WaitState) -> str:
    """For example C(2 of 3 operations)."""
    total = len(state.operations)
    return f"{len(refs)} of {total} operation{'' if total == 1 else 's'}"


def _describe(refs: Sequence[OperationRef], state: WaitState) -> str:
    """Each operation with its status, its failures_count and the service's error text."""
    descriptions = [_describe_one(ref, state) for ref in refs[:MAX_DESCRIBED]]
    if len(refs) > MAX_DESCRIBED:
        descriptions.append(f"and {len(refs) - MAX_DESCRIBED} more (see operations)")
    return "; ".join(descriptions)


def _describe_one(ref: OperationRef, state: WaitState) -> str:
    operation = state.operations[ref]
    if operation is None:
        return f"operation {ref.id} of {ref.project_id} could not be polled"
    action, status = (displayable(operation.get(field, "operation"), 100) for field in ("action", "status"))
    text = f"{action} {ref.id} of {ref.project_id} is {status}"
    if "failures_count" in operation:
        text += f" (failures_count {displayable(operation['failures_count'], 20)})"
    return f"{text}: {displayable(operation['error']).rstrip('.')}" if operation.get("error") else text
