# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource to the state that a task asks for: observe, decide, send once, observe until it is so.

Keeps P2, P3 and P4. What happened to the request does not decide alone: after a lost response, or a refusal because
somebody else was faster, and while a list lags, the resource is observed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from .._clock import Deadline
from .._http.client import SUCCESS, Client
from .._http.errors import NotFound, RequestFailed, StatusError, UnexpectedResponse
from .._http.response import Response
from .._http.session import LOCKED
from .._operations.api import Operation
from .._operations.status import SUCCEEDED
from .._operations.wait import LAST_POLL_SECONDS, Limits, Wait, poll_interval
from .._operations.wait_failure import WaitFailed
from .._operations.wait_state import UnfinishedOperations, WaitState
from .._timestamps import parse_timestamp
from .compare import contains, differing, fields_of
from .lookup import label_of
from .observe import Observation, observe, shown_resource
from .outcome import (
    Result,
    created_differently,
    ignored_fields_warning,
    locked,
    no_match,
    overdue,
    result_of,
    unknown_outcome,
)
from .plan import Plan, Resource, fill, project_in_path
from .state import ABSENT, BROKEN, DELETING, DIFFERENT, LOOKBACK, PRESENT, UNFINISHED, UNSEEN, is_failed_creation

SEND, WAIT, DONE, FAIL = "send", "wait", "done", "fail"
# What to do in each state. Once the request has been sent, SEND and FAIL become WAIT.
STEPS = {
    "POST": {ABSENT: SEND, UNFINISHED: WAIT, PRESENT: DONE, DELETING: WAIT, BROKEN: WAIT},
    "PATCH": {ABSENT: FAIL, UNFINISHED: WAIT, PRESENT: DONE, DELETING: FAIL, BROKEN: WAIT, DIFFERENT: SEND},
    "DELETE": {ABSENT: DONE, UNFINISHED: SEND, PRESENT: SEND, DELETING: WAIT, BROKEN: SEND},
}
STEPS["PUT"] = STEPS["PATCH"]
# Refusals after which the resource may be there (POST) or gone (DELETE), because somebody else was faster.
OVERTAKEN = {"POST": frozenset({400, 409, 412, 422}), "DELETE": frozenset({404, 409, 410, 412})}
CONFLICT_STATUSES, GONE_STATUSES = frozenset({409, 412}), frozenset({404, 410})
# For how long a list may lag, and a request whose connection broke may still be carried out.
SETTLING_SECONDS = 30.0


class Memory:
    """What has happened so far, in values that JSON can express, so that another process can continue."""

    def __init__(self, **saved: Any) -> None:
        # By the monotonic clock, which all processes of a machine share. The deadlines are None until a wait begins.
        self.started = 0.0
        self.deadline: float | None = None
        self.lock_deadline: float | None = None
        # Whether the request was sent, other than to a locked project: it is not sent again.
        self.sent = False
        # When the request was first sent, by the service's clock.
        self.sent_at: str | None = None
        # Whether the service has carried it out, or may have.
        self.changed = False
        # Those of the response.
        self.status: int | None = None
        self.json: Any = None
        # The resource before the request, and as it was last seen.
        self.before: Resource | None = None
        self.known: Resource | None = None
        # The operations about the resource, and whether they were waited for.
        self.operations: list[Operation] = []
        self.has_waited = False
        self.polls = 0
        self.warnings: list[str] = []
        vars(self).update(saved)


class Engine:
    """One run of a task: C(memory) is what the next run has to know, the rest belongs to this one.

    C(error) is what went wrong with the request, until an observation shows that nothing did; that has to be known at
    C(settled_at). C(earlier): the result of what the task has done before, whose time counts: another request, which was not
    sent, but waited for the resource, or the deletion of other branches.
    """

    def __init__(
        self, client: Client, plan: Plan, limits: Limits, lock_timeout: float, earlier: Result | None = None
    ) -> None:
        self._client, self._plan, self._limits, self._lock_timeout = client, plan, limits, lock_timeout
        self._began = client.clock.monotonic()
        earlier = earlier or result_of()
        kept = {name: earlier[name] for name in ("operations", "polls", "warnings")}
        self._memory = Memory(started=self._began - earlier["elapsed"], **kept)
        self._timeout = max(0.0, limits.timeout - earlier["elapsed"])
        self._error: RequestFailed | None = None
        self._settled_at = math.inf
        self._locking: list[str] = []
        self._pauses = 0
        self._changes: list[Operation] = earlier.get("_changes", [])

    def run(self, saved: Mapping[str, Any] | None = None) -> Result:
        """Do what the plan asks for; the task's result. C(saved) is the C(_state) of a result that C(stop_when) ended early.

        Raises what Client raises, ResourceError and WaitFailed.
        """
        result = None
        if saved:
            self._memory = Memory(**saved["memory"])
            self._settled_at = self._began + SETTLING_SECONDS
            if saved["wait"]:
                result = self._run_wait(WaitState.from_json(self._client.clock, saved["wait"]))
        while result is None:
            if self._plan.find is None and not self._memory.sent:
                result = self._send(None)
                continue
            seen = self._observe()
            step = self._step(seen)
            if step == FAIL:
                raise no_match(self._plan, seen)
            if step == DONE:
                if not self._memory.sent:
                    self._memory.warnings += seen.warnings
                return self._result(seen.resource, seen.operations)
            result = self._send(seen.resource) if step == SEND else self._wait(seen)
        return result

    # Observe and decide

    def _observe(self) -> Observation:
        plan, memory, client = self._plan, self._memory, self._client
        if memory.deadline is not None:
            client = client.with_deadline(Deadline(client.clock, memory.deadline + LAST_POLL_SECONDS), retries=True)
        has_acted = memory.sent or memory.changed
        known = (memory.known or {}) if has_acted else None
        sent_at = parse_timestamp(memory.sent_at) if memory.sent_at else None
        try:
            seen = observe(client, plan, known, sent_at, has_waited=memory.has_waited)
        except RequestFailed as error:
            is_passing = error.transient or isinstance(error, UnexpectedResponse)
            seen = Observation(UNSEEN, None)
            if is_passing and self._seconds_left() > 0 and not (self._error and self._is_settled()):
                return seen
            raise self._failure(seen, error) from error
        if seen.resource:
            # Only the response to a creation has some fields, such as passwords.
            shown = known if plan.method == "POST" and known else {}
            seen = seen._replace(resource={**shown, **seen.resource})
            memory.known = seen.resource
        return seen

    def _step(self, seen: Observation) -> str:
        plan, memory = self._plan, self._memory
        under_way = DELETING if plan.method == "DELETE" else UNFINISHED
        if seen.state == under_way and not plan.wait:
            return DONE
        step = STEPS[plan.method].get(seen.state, WAIT)
        if step not in (SEND, FAIL) or not memory.sent:
            return step
        # The service may ignore a field, or return another value for it than was sent.
        shown = shown_resource(memory.json, plan)
        is_ignored = shown is not None and bool(differing(shown, plan.body))
        return DONE if seen.state == DIFFERENT and not self._error and (is_ignored or self._is_settled()) else WAIT

    # Send

    def _send(self, found: Resource | None) -> Result | None:
        """Send the request about the resource; the result if the task, or this run of it, is over."""
        plan, memory, client = self._plan, self._memory, self._client
        memory.before = memory.known = found
        # An accepted error would hide what an earlier attempt has done.
        accept = [status for status in plan.accept if status in SUCCESS or not memory.changed]
        segments = fill(plan.segments, found or {})
        began, error = client.clock.monotonic(), None
        try:
            response = client.request(
                plan.method, segments, plan.query, plan.body, accept=accept, retry_locked=False, may_be_empty=True
            )
            operations = started_operations(response)
        except RequestFailed as failed:
            error = failed
        if memory.sent_at is None:
            sent_at = client.service_now() - timedelta(seconds=client.clock.monotonic() - began)
            memory.sent_at = sent_at.isoformat()
        if error:
            return self._after_error(error)
        memory.status, memory.json = response.status, response.json
        if response.status not in SUCCESS:
            return self._result(found, operations)
        memory.sent = memory.changed = True
        shown = shown_resource(response.json, plan)
        memory.known = shown or memory.known
        self._begin_waiting(SETTLING_SECONDS)
        if plan.wait:
            return self._wait_for(operations, is_own=True) if operations else None
        if plan.method == "DELETE":
            return self._result(None, operations)
        # A response that does not show the resource, or not enough of it, is followed by an observation.
        is_shown = shown and (plan.find is None or plan.find.match.keys() <= shown.keys())
        return self._result(shown, operations) if is_shown else None

    def _after_error(self, error: RequestFailed) -> Result | None:
        """Decide what to do without a success. Raises the error if the resource cannot be as wanted nevertheless."""
        plan, memory = self._plan, self._memory
        status = error.status if isinstance(error, StatusError) else 0
        if status in SUCCESS:
            raise error
        memory.changed = memory.changed or error.may_have_acted
        if isinstance(error, StatusError) and status == LOCKED:
            return self._wait_until_unlocked(error)
        if not memory.changed and not (plan.find and status in OVERTAKEN.get(plan.method, ())):
            raise error
        self._error = error
        if plan.find is None:
            if plan.method == "DELETE" and status in GONE_STATUSES:
                return self._result(None)
            hint = " With find, the task looks this up automatically." if plan.method == "POST" else ""
            raise unknown_outcome(error, f"Check whether it was, before you run the task again.{hint}")
        memory.sent = True
        seconds = SETTLING_SECONDS if memory.changed or status in CONFLICT_STATUSES | GONE_STATUSES else 0.0
        if status in GONE_STATUSES and plan.find.segments == plan.segments[:-1]:
            # The path is right, because its list has been fetched. So the resource is gone, and only its list lags.
            seconds = math.inf
        self._begin_waiting(seconds)
        return None

    # Wait

    def _begin_waiting(self, seconds_to_settle: float = math.inf) -> None:
        now = self._client.clock.monotonic()
        if self._memory.deadline is None:
            self._memory.deadline = now + self._timeout
        self._settled_at = now + seconds_to_settle

    def _seconds_left(self) -> float:
        deadline = self._memory.deadline
        return 0.0 if deadline is None else deadline - self._client.clock.monotonic()

    def _is_settled(self) -> bool:
        return self._client.clock.monotonic() >= self._settled_at or self._seconds_left() <= 0

    def _wait(self, seen: Observation) -> Result | None:
        """Wait for the operations that explain the state, or until the next observation; the result if this run is over."""
        if self._memory.deadline is None:
            self._begin_waiting()
        is_explained = self._error is None or seen.state in (UNFINISHED, DELETING, BROKEN)
        if self._seconds_left() <= 0 or (not is_explained and self._is_settled()):
            raise self._failure(seen)
        if all(operation["status"] in SUCCEEDED for operation in seen.operations):
            return self._pause(
                self._seconds_left() if is_explained else self._settled_at - self._client.clock.monotonic()
            )
        return self._wait_for(seen.operations, is_own=seen.state != DELETING or self._plan.method == "DELETE")

    def _pause(self, longest: float, shortest: float = 0.0) -> Result | None:
        """Pause before the next observation or attempt; the result if this run is over."""
        clock, stop_when = self._client.clock, self._limits.stop_when
        self._pauses += 1
        clock.sleep(max(0.0, min(max(poll_interval(self._pauses, self._limits.interval), shortest), longest)))
        is_long = stop_when and clock.monotonic() - self._began >= stop_when.max_seconds
        return self._to_be_continued({}) if is_long and not self._error else None

    def _wait_for(self, operations: Sequence[Operation], is_own: bool) -> Result | None:
        """Wait until these operations have succeeded or, unless C(is_own), ended; the result if this run is over."""
        state = WaitState(self._client.clock, max(0.0, self._seconds_left()), accepts_failure=not is_own)
        known = self._memory.operations if is_own else []
        for operation in {operation["id"]: operation for operation in [*known, *operations]}.values():
            state.expect(operation)
        return self._run_wait(state)

    def _run_wait(self, state: WaitState) -> Result | None:
        """Run this wait; the result if this run of the task is over. Raises WaitFailed."""
        memory, is_own = self._memory, not state.accepts_failure
        if is_own:
            state.changes = self._changes
        try:
            result = Wait(self._client, self._limits, state).run()
        except WaitFailed as failure:
            # The operations of a deleted project are gone. After the deadline of a lock, the request is sent once more.
            is_gone = failure.kind == NotFound.kind and (self._plan.method == "DELETE" or not is_own)
            if not is_gone and (is_own or state.remaining() > 0):
                known, so_far = memory.known or {}, self._so_far(memory.known)
                failure.result = {**so_far, **failure.result, "elapsed": so_far["elapsed"]}
                if is_own and any(is_failed_creation(each, known) for each in failure.result["operations"]):
                    left = f"This creation left {label_of(known)}, which is not usable. Delete it, then run the task again."
                    failure.args = (f"{failure} {left}",)
                raise
            result = state.result()
        # The changes of other operations are shown before the request is sent.
        if "_state" in result or (result.get("_changes") and not is_own):
            return self._to_be_continued(result)
        memory.polls += state.polls
        if is_own:
            memory.operations, memory.has_waited = result["operations"], True
            memory.warnings += result["warnings"]
        else:
            self._locking = [ref.id for ref in state.awaited()]
        return None

    def _wait_until_unlocked(self, error: StatusError) -> Result | None:
        """Wait for the unfinished operations of the project; the result if this run is over. Raises ResourceError."""
        plan, memory, clock = self._plan, self._memory, self._client.clock
        self._begin_waiting()
        # All waits of a task share one timeout, except that api_request has one of its own for this wait.
        if plan.is_api_request:
            memory.deadline = None
        memory.lock_deadline = memory.lock_deadline or memory.deadline or clock.monotonic() + self._lock_timeout
        remaining = memory.lock_deadline - clock.monotonic()
        if remaining <= 0:
            raise locked(plan, error, self._lock_timeout, self._locking, memory.changed)
        project_id = project_in_path(error.details["path"].split("/")[1:])
        if project_id:
            unlisted = UnfinishedOperations(project_id, LOOKBACK.total_seconds())
            state = WaitState(clock, remaining, (), unlisted, accepts_failure=True)
            result = self._run_wait(state)
            if result or state.operations:
                return result
        return self._pause(memory.lock_deadline - clock.monotonic(), shortest=error.retry_after or 0.0)

    def _to_be_continued(self, waited: Mapping[str, Any]) -> Result:
        """The result of a run that another one continues; C(waited) is that of a wait."""
        memory = self._memory
        deadline = memory.lock_deadline if memory.deadline is None else memory.deadline
        state = {
            "memory": vars(memory),
            "wait": waited.get("_state"),
            "remaining": max(0.0, (deadline or 0.0) - self._client.clock.monotonic()),
            "is_sent": memory.sent,
        }
        so_far = self._so_far(memory.known)
        return {**so_far, "_changes": self._changes, **waited, "elapsed": so_far["elapsed"], "_state": state}

    # End

    def _so_far(self, resource: Resource | None) -> Result:
        """The result as it is so far."""
        memory = self._memory
        return result_of(
            memory.before,
            resource,
            changed=memory.changed,
            json=memory.json,
            status=memory.status,
            operations=memory.operations,
            elapsed=round(self._client.clock.monotonic() - memory.started, 3),
            polls=memory.polls,
            request=self._plan.request(memory.before) if memory.changed or memory.status else None,
            warnings=memory.warnings,
        )

    def _result(self, resource: Resource | None, operations: Sequence[Operation] = ()) -> Result:
        """The task's result. Raises ResourceError if C(find) would not find what was created."""
        plan, memory = self._plan, self._memory
        if not memory.changed:
            memory.before = resource
        elif memory.status is None:
            memory.warnings.append(
                f"The response to {plan.request_line} was lost, but the service has carried out the request."
            )
        elif plan.is_update and memory.before and resource:
            before = memory.before
            pairs = [(before.get(name), resource.get(name)) for name in fields_of(plan.body, before)]
            memory.changed = not all(contains(old, new) and contains(new, old) for old, new in pairs)
            if ignored := differing(resource, plan.body):
                memory.warnings.append(ignored_fields_warning(plan, ignored))
        about = {operation["id"]: operation for operation in [*memory.operations, *operations]}
        memory.operations = list(about.values())
        result = self._so_far(resource)
        is_created = plan.method == "POST" and memory.changed
        if is_created and plan.find and resource and not contains(resource, plan.find.match):
            raise created_differently(plan, resource, plan.find.match, result)
        return {**result, "_changes": self._changes} if self._limits.stop_when else result

    def _failure(self, seen: Observation, unobserved: RequestFailed | None = None) -> Exception:
        """The error for a resource that is not as asked in time, or whose observation failed with C(unobserved)."""
        memory = self._memory
        if self._error and memory.changed:
            so_far = f"This could not be looked up: {unobserved}" if unobserved else "So far, it was not."
            return unknown_outcome(self._error, f"{so_far} It is safe to run the task again.")
        if self._error and (unobserved or seen.state != DELETING):
            return self._error
        if unobserved and memory.changed:
            problem = f"{self._plan.request_line} was carried out, but its result could not be looked up"
            unobserved.args = (f"{problem}. {unobserved}",)
            unobserved.result = self._so_far(memory.known)
        return unobserved or overdue(self._plan, seen, memory.known, self._limits.timeout, self._so_far(seen.resource))


def started_operations(response: Response) -> list[Operation]:
    """The operations that the response names (api.md, Operations returned by other requests). Raises UnexpectedResponse."""
    named = response.json.get("operations") if isinstance(response.json, dict) else None
    return response.items("operations", id=str, project_id=str, status=str) if isinstance(named, list) else []
