# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends the request of a task once its project is unlocked, and waits for what the request started."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from .._errors import LOCKED, ClouddbError, NotFound, StatusError
from .._http.client import Client
from .._operations.wait import Limits, StopWhen, Wait, poll_interval
from .._operations.wait_failure import WaitFailed
from .._operations.wait_state import OperationRef, UnfinishedOperations, WaitState
from .._timestamps import parse_timestamp
from .outcome import Outcome
from .path import project_of
from .plan import Plan
from .send import LOOKBACK, carry_out


class Locked(ClouddbError):
    """The project was locked until C(lock_timeout) was over."""

    kind = "locked"


def send_when_unlocked(
    client: Client,
    plan: Plan,
    limits: Limits,
    lock_timeout: float,
    stop_when: StopWhen | None = None,
    resumed: Mapping[str, Any] | None = None,
) -> Outcome | dict[str, Any]:
    """Send the request. After a 423, wait until the project's unfinished operations have ended, and send it again.

    With C(stop_when), the result may be that of an unfinished wait for the lock, whose C(_state) is the C(resumed) of the
    next call. Raises what carry_out() raises, and Locked after C(lock_timeout) seconds.
    """
    acted_since, refusals, retry_after = None, 0, 0.0
    lock = WaitState.from_json(client.clock, resumed) if resumed else None
    if resumed and resumed["acted_since"]:
        acted_since = parse_timestamp(resumed["acted_since"])
    while True:
        if lock:
            result = _wait_for_operations(client, limits, lock, stop_when)
            # The status changes are shown before the request is sent.
            if "_state" in result or result.get("_changes"):
                since = acted_since.isoformat() if acted_since else None
                return {**result, "_state": {**lock.to_json(), "locked": True, "acted_since": since}}
            if not lock.operations:
                # Without a project id, its operations cannot be listed.
                refusals += 1
                pause = max(poll_interval(refusals, limits.interval), retry_after)
                client.clock.sleep(min(pause, lock.remaining()))
        began = client.clock.monotonic()
        try:
            return carry_out(client, plan, acted_since)
        except StatusError as error:
            if error.status != LOCKED:
                raise
            refusal = error
        if refusal.may_have_acted and not acted_since:
            acted_since = client.service_now() - timedelta(seconds=client.clock.monotonic() - began)
        retry_after = refusal.retry_after or 0.0
        remaining = lock.remaining() if lock else lock_timeout
        if remaining <= 0:
            raise _locked(lock_timeout, lock, refusal, acted_since is not None)
        project_id = project_of(refusal.details["path"].split("/")[1:])
        unlisted = UnfinishedOperations(project_id, LOOKBACK) if project_id else None
        lock = WaitState(client.clock, lock_timeout, (), unlisted, lock_timeout - remaining, accepts_failure=True)


def _wait_for_operations(client: Client, limits: Limits, lock: WaitState, stop_when: StopWhen | None) -> dict[str, Any]:
    """Wait until no operation of the project is unfinished, or the deadline of C(lock) has passed."""
    try:
        return Wait(client, limits, lock).run(stop_when)
    except WaitFailed as failure:
        # At the deadline the request is sent once more. A project that can't be listed is left to the request as well.
        if lock.remaining() > 0 and failure.kind != NotFound.kind:
            raise
    return {}


def _locked(lock_timeout: float, lock: WaitState | None, refusal: StatusError, may_have_acted: bool) -> Locked:
    message = f"{refusal} The project stayed locked for {lock_timeout:g} s (lock_timeout)"
    message += "." if may_have_acted else ", so the request was not carried out."
    unfinished = [ref.id for ref in lock.not_succeeded()] if lock else []
    if unfinished:
        message += f" Unfinished operations of the project: {', '.join(unfinished[:20])}."
    return Locked(f"{message} Run the task again later, or increase lock_timeout.", refusal.details)


def wait_state(client: Client, outcome: Outcome, timeout: float) -> WaitState:
    """The state of a wait for the operations of C(outcome)."""
    state = WaitState(client.clock, timeout)
    for operation in outcome.operations:
        state.record(OperationRef(operation["project_id"], operation["id"]), operation)
    return state
