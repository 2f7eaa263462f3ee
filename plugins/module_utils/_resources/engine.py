# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource to the state that a task asks for: observe, decide, send once, observe until it is so.

Keeps P2, P3 and P4. What happened to the request does not decide alone: after a lost response, or a refusal because
somebody else was faster, and while a list lags, the resource is observed again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from .._clock import Deadline
from .._errors import InvalidOption
from .._http.client import SUCCESS, Client
from .._http.errors import NotFound, RequestFailed, StatusError, UnexpectedResponse
from .._http.response import Response
from .._http.session import LOCKED
from .._operations.api import Operation
from .._operations.progress import Progress
from .._operations.status import SUCCEEDED
from .._operations.wait import LAST_POLL_SECONDS, Limits, Wait, poll_interval
from .._operations.wait_failure import WaitFailed
from .._operations.wait_state import UnfinishedOperations, WaitState
from .compare import contains, differing, fields_of
from .goal import ACT, CHANGE, CREATE, DELETE, ENSURE, Goal, Resource, ResourceRequest, fill, project_in_path
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
from .state import ABSENT, BROKEN, DELETING, DIFFERENT, LOOKBACK, PRESENT, UNFINISHED, UNSEEN, is_failed_creation

WAIT, DONE, FAIL = "wait", "done", "fail"
# The step for an intent and the state of its resource: the request to send, or one of these.
STEPS = {
    ENSURE: {ABSENT: CREATE, UNFINISHED: WAIT, PRESENT: DONE, DIFFERENT: CHANGE, DELETING: WAIT, BROKEN: WAIT},
    CREATE: {ABSENT: CREATE, UNFINISHED: WAIT, PRESENT: DONE, DELETING: WAIT, BROKEN: WAIT},
    CHANGE: {ABSENT: FAIL, UNFINISHED: WAIT, PRESENT: DONE, DIFFERENT: CHANGE, DELETING: FAIL, BROKEN: WAIT},
    DELETE: {ABSENT: DONE, UNFINISHED: DELETE, PRESENT: DELETE, DELETING: WAIT, BROKEN: DELETE},
    ACT: {ABSENT: FAIL, UNFINISHED: WAIT, PRESENT: ACT, DELETING: FAIL, BROKEN: WAIT},
}
# Refusals after which the resource may be there (CREATE) or gone (DELETE), because somebody else was faster.
OVERTAKEN = {CREATE: frozenset({400, 409, 412, 422}), DELETE: frozenset({404, 409, 410, 412})}
CONFLICT_STATUSES, GONE_STATUSES = frozenset({409, 412}), frozenset({404, 410})
# For how long a list may lag, and a request whose connection broke may still be carried out.
SETTLING_SECONDS = 30.0


def step_for(goal: Goal, seen: Observation) -> str:
    """What to do about the resource before anything was sent."""
    return STEPS[goal.intent].get(_compared(goal, seen).state, WAIT)


def _compared(goal: Goal, seen: Observation) -> Observation:
    """DIFFERENT if the resource is there, and the goal would change it."""
    comparable = (PRESENT,) if goal.wait else (PRESENT, UNFINISHED)
    return seen._replace(state=DIFFERENT) if seen.state in comparable and goal.differs(seen.resource) else seen


def require_fixed(goal: Goal, seen: Observation) -> None:
    """Raise InvalidOption if the resource has another value of a field that cannot be changed."""
    found = seen.resource or {}
    for field, wanted in goal.fixed.items():
        if seen.state in (PRESENT, UNFINISHED, DIFFERENT) and field in found and not contains(found[field], wanted):
            option = goal.options.get(field, field)
            problem = f"{label_of(found)} has {field} {found[field]}, which cannot be changed"
            raise InvalidOption(option, f"{problem}. Set {option} to this value, or omit it.")


class Engine:
    """One run of a task.

    C(lock_timeout) bounds the wait for a locked project; None: the timeout of the task does. C(elapsed) seconds of that have
    passed already.
    """

    def __init__(
        self, client: Client, goal: Goal, limits: Limits, lock_timeout: float | None = None, elapsed: float = 0.0
    ) -> None:
        self._client, self._goal, self._limits, self._lock_timeout = client, goal, limits, lock_timeout
        self._started = client.clock.monotonic() - elapsed
        self._timeout = max(0.0, limits.timeout - elapsed)
        # By the monotonic clock; None until a wait begins.
        self._deadline: float | None = None
        self._lock_deadline: float | None = None
        # The step whose request was sent, other than to a locked project: it is not sent again.
        self._sent: str | None = None
        # When the request was first sent, by the service's clock.
        self._sent_at: datetime | None = None
        # Whether the service has carried it out, or may have.
        self._changed = False
        # Those of the response.
        self._status: int | None = None
        self._json: Any = None
        # The resource before the request, and as it was last seen.
        self._before: Resource | None = None
        self._known: Resource | None = None
        # The operations about the resource, and whether they were waited for.
        self._operations: list[Operation] = []
        self._has_waited = False
        self._polls = 0
        self._warnings: list[str] = []
        # What went wrong with the request, until an observation shows that nothing did; that has to be known at this time.
        self._error: RequestFailed | None = None
        self._settled_at = math.inf
        # The unfinished operations of a locked project.
        self._locking: list[str] = []
        self._pauses = 0
        self._progress = Progress(client.clock)

    def run(self) -> Result:
        """Do what the goal needs; the task's result. Raises what Client raises, ResourceError, InvalidOption and WaitFailed."""
        while True:
            is_unseen = self._goal.find is None and not self._sent
            seen = Observation(ABSENT, None) if is_unseen else self._observe()
            step = next(iter(self._goal.requests)) if is_unseen else self._step(seen)
            if step == FAIL:
                raise no_match(self._goal, seen)
            if step == DONE:
                if not self._sent:
                    self._warnings += seen.warnings
                return self._result(seen)
            if step == WAIT:
                self._wait(seen)
            elif shown := self._send(step, seen.resource):
                return self._result(shown)

    @property
    def _request(self) -> ResourceRequest:
        """The request that was sent, or that would be first."""
        return self._goal.request(self._sent, self._before) if self._sent else self._goal.first

    # Observe and decide

    def _observe(self) -> Observation:
        goal, client = self._goal, self._client
        if self._deadline is not None:
            client = client.with_deadline(Deadline(client.clock, self._deadline + LAST_POLL_SECONDS), retries=True)
        has_acted = bool(self._sent) or self._changed
        known = (self._known or {}) if has_acted else None
        try:
            seen = observe(client, goal, self._sent, known, self._sent_at, self._has_waited)
        except RequestFailed as error:
            is_passing = error.transient or isinstance(error, UnexpectedResponse)
            seen = Observation(UNSEEN, None)
            if is_passing and self._seconds_left() > 0 and not (self._error and self._is_settled()):
                return seen
            raise self._failure(seen, error) from error
        if seen.resource:
            # Only the response to a creation has some fields, such as passwords.
            shown = known if goal.creates and known else {}
            seen = seen._replace(resource={**shown, **seen.resource})
            self._known = seen.resource
        if not self._changed:
            require_fixed(goal, seen)
            return _compared(goal, seen)
        return seen

    def _step(self, seen: Observation) -> str:
        goal = self._goal
        under_way = DELETING if goal.intent == DELETE else UNFINISHED
        if seen.state == under_way and not goal.wait:
            return DONE
        step = STEPS[goal.intent].get(seen.state, WAIT)
        if not self._sent:
            return step
        if self._sent == ACT and seen.state == PRESENT:
            # Whether a lost request was carried out, only the operations that it has started show.
            return DONE if not self._error or seen.operations else WAIT
        # Somebody else was faster, and has created it differently.
        if step in (WAIT, DONE) or (step == CHANGE and self._sent == CREATE):
            return step
        # The service may ignore a field, or return another value for it than was sent.
        shown = shown_resource(self._json, self._request)
        is_ignored = shown is not None and bool(differing(shown, self._request.wanted))
        return DONE if seen.state == DIFFERENT and not self._error and (is_ignored or self._is_settled()) else WAIT

    # Send

    def _send(self, step: str, found: Resource | None) -> Observation | None:
        """Send the request of this step about the resource; what the response shows, if no other observation is needed."""
        goal, client = self._goal, self._client
        request = goal.request(step, found)
        self._before = self._known = found
        self._error = None
        # An accepted error would hide what an earlier attempt has done.
        accept = [status for status in request.accept if status in SUCCESS or not self._changed]
        segments = fill(request.segments, found or {})
        began, error = client.clock.monotonic(), None
        try:
            response = client.request(
                request.method,
                segments,
                request.query,
                request.body,
                accept=accept,
                retry_locked=False,
                may_be_empty=True,
            )
            operations = started_operations(response)
        except RequestFailed as failed:
            error = failed
        if self._sent_at is None:
            self._sent_at = client.service_now() - timedelta(seconds=client.clock.monotonic() - began)
        if error:
            return self._after_error(step, error)
        self._status, self._json = response.status, response.json
        if response.status not in SUCCESS:
            return Observation(PRESENT, found, operations)
        self._sent, self._changed, self._has_waited = step, True, False
        shown = shown_resource(response.json, request)
        self._known = shown or self._known
        self._begin_waiting(SETTLING_SECONDS)
        if goal.wait:
            if operations:
                self._wait_for(operations, is_own=True)
            return None
        if step == DELETE:
            return Observation(DELETING, None, operations)
        # A response that does not show the resource, or not enough of it, is followed by an observation.
        is_shown = shown and (goal.find is None or goal.find.match.keys() <= shown.keys())
        return Observation(UNFINISHED, shown, operations) if is_shown else None

    def _after_error(self, step: str, error: RequestFailed) -> Observation | None:
        """Decide what to do without a success. Raises the error if the resource cannot be as wanted nevertheless."""
        goal = self._goal
        status = error.status if isinstance(error, StatusError) else 0
        if status in SUCCESS:
            raise error
        self._changed = self._changed or error.may_have_acted
        if isinstance(error, StatusError) and status == LOCKED:
            self._wait_until_unlocked(error)
            return None
        if not self._changed and not (goal.find and status in OVERTAKEN.get(step, ())):
            raise error
        self._error = error
        if goal.find is None:
            if step == DELETE and status in GONE_STATUSES:
                return Observation(ABSENT, None)
            hint = " With find, the task looks this up automatically." if step == CREATE else ""
            raise unknown_outcome(error, f"Check whether it was, before you run the task again.{hint}")
        self._sent = step
        seconds = SETTLING_SECONDS if self._changed or status in CONFLICT_STATUSES | GONE_STATUSES else 0.0
        if status in GONE_STATUSES and goal.find.segments == goal.requests[step].segments[:-1]:
            # The path is right, because its list has been fetched. So the resource is gone, and only its list lags.
            seconds = math.inf
        self._begin_waiting(seconds)
        return None

    # Wait

    def _begin_waiting(self, seconds_to_settle: float = math.inf) -> None:
        now = self._client.clock.monotonic()
        if self._deadline is None:
            self._deadline = now + self._timeout
        self._settled_at = now + seconds_to_settle

    def _seconds_left(self) -> float:
        deadline = self._deadline
        return 0.0 if deadline is None else deadline - self._client.clock.monotonic()

    def _is_settled(self) -> bool:
        return self._client.clock.monotonic() >= self._settled_at or self._seconds_left() <= 0

    def _wait(self, seen: Observation) -> None:
        """Wait for the operations that explain the state, or until the next observation."""
        if self._deadline is None:
            self._begin_waiting()
        is_explained = self._error is None or seen.state in (UNFINISHED, DELETING, BROKEN)
        if self._seconds_left() <= 0 or (not is_explained and self._is_settled()):
            raise self._failure(seen)
        if all(operation["status"] in SUCCEEDED for operation in seen.operations):
            settling = self._settled_at - self._client.clock.monotonic()
            self._pause(self._seconds_left() if is_explained else settling)
        else:
            self._wait_for(seen.operations, is_own=seen.state != DELETING or self._goal.intent == DELETE)

    def _pause(self, longest: float, shortest: float = 0.0) -> None:
        """Pause before the next observation or attempt."""
        self._pauses += 1
        interval = poll_interval(self._pauses, self._limits.interval)
        self._client.clock.sleep(max(0.0, min(max(interval, shortest), longest)))
        self._progress.report()

    def _wait_for(self, operations: Sequence[Operation], is_own: bool) -> None:
        """Wait until these operations have succeeded or, unless C(is_own), ended."""
        state = WaitState(self._client.clock, max(0.0, self._seconds_left()), accepts_failure=not is_own)
        known = self._operations if is_own else []
        for operation in {operation["id"]: operation for operation in [*known, *operations]}.values():
            state.expect(operation)
        self._run_wait(state)

    def _run_wait(self, state: WaitState) -> None:
        """Run this wait. Raises WaitFailed."""
        is_own = not state.accepts_failure
        try:
            result = Wait(self._client, self._limits, state, self._progress).run()
        except WaitFailed as failure:
            # The operations of a deleted project are gone. After the deadline of a lock, the request is sent once more.
            is_gone = failure.kind == NotFound.kind and (self._goal.intent == DELETE or not is_own)
            if not is_gone and (is_own or state.remaining() > 0):
                known, so_far = self._known or {}, self._so_far(self._known)
                failure.result = {**so_far, **failure.result, "elapsed": so_far["elapsed"]}
                if is_own and any(is_failed_creation(each, known) for each in failure.result["operations"]):
                    left = f"This creation left {label_of(known)}, which is not usable. Delete it, then run the task again."
                    failure.args = (f"{failure} {left}",)
                raise
            result = state.result()
        self._polls += state.polls
        if is_own:
            self._operations, self._has_waited = result["operations"], True
            self._warnings += result["warnings"]
        else:
            self._locking = [ref.id for ref in state.awaited()]

    def _wait_until_unlocked(self, error: StatusError) -> None:
        """Wait for the unfinished operations of the project. Raises ResourceError."""
        clock = self._client.clock
        if self._lock_timeout is None:
            self._begin_waiting()
        option, seconds = (
            ("timeout", self._timeout) if self._lock_timeout is None else ("lock_timeout", self._lock_timeout)
        )
        self._lock_deadline = self._lock_deadline or self._deadline or clock.monotonic() + seconds
        remaining = self._lock_deadline - clock.monotonic()
        if remaining <= 0:
            raise locked(error, option, seconds, self._locking, self._changed)
        project_id = project_in_path(error.details["path"].split("/")[1:])
        if project_id:
            unlisted = UnfinishedOperations(project_id, LOOKBACK.total_seconds())
            state = WaitState(clock, remaining, (), unlisted, accepts_failure=True)
            self._run_wait(state)
            if state.operations:
                return
        self._pause(self._lock_deadline - clock.monotonic(), shortest=error.retry_after or 0.0)

    # End

    def _so_far(self, resource: Resource | None) -> Result:
        """The result as it is so far."""
        return result_of(
            self._before,
            resource,
            changed=self._changed,
            json=self._json,
            status=self._status,
            operations=self._operations,
            elapsed=round(self._client.clock.monotonic() - self._started, 3),
            polls=self._polls,
            request=self._request.shown(self._before) if self._changed or self._status else None,
            warnings=self._warnings,
        )

    def _result(self, seen: Observation) -> Result:
        """The task's result. Raises ResourceError if C(find) would not find what was created."""
        resource, goal, request = seen.resource, self._goal, self._request
        if not self._changed:
            self._before = resource
        elif self._status is None:
            self._warnings.append(
                f"The response to {request.line} was lost, but the service has carried out the request."
            )
        elif self._sent == CHANGE and self._before and resource:
            before = self._before
            pairs = [(before.get(name), resource.get(name)) for name in fields_of(request.wanted, before)]
            self._changed = not all(contains(old, new) and contains(new, old) for old, new in pairs)
            if ignored := differing(resource, request.wanted):
                self._warnings.append(ignored_fields_warning(goal, request, ignored))
        about = {operation["id"]: operation for operation in [*self._operations, *seen.operations]}
        self._operations = list(about.values())
        result = self._so_far(resource)
        is_created = self._sent == CREATE and self._changed
        if is_created and goal.find and resource and not contains(resource, goal.find.match):
            raise created_differently(goal, resource, goal.find.match, result)
        return result

    def _failure(self, seen: Observation, unobserved: RequestFailed | None = None) -> Exception:
        """The error for a resource that is not as asked in time, or whose observation failed with C(unobserved)."""
        if self._error and self._changed:
            so_far = f"This could not be looked up: {unobserved}" if unobserved else "So far, it was not."
            return unknown_outcome(self._error, f"{so_far} It is safe to run the task again.")
        if self._error and (unobserved or seen.state != DELETING):
            return self._error
        if unobserved and self._changed:
            problem = f"{self._request.line} was carried out, but its result could not be looked up"
            unobserved.args = (f"{problem}. {unobserved}",)
            unobserved.result = self._so_far(self._known)
        return unobserved or overdue(
            self._request, seen, self._known, self._limits.timeout, self._so_far(seen.resource)
        )


def started_operations(response: Response) -> list[Operation]:
    """The operations that the response names (api.md, Operations returned by other requests). Raises UnexpectedResponse."""
    named = response.json.get("operations") if isinstance(response.json, dict) else None
    return response.items("operations", id=str, project_id=str, status=str) if isinstance(named, list) else []
