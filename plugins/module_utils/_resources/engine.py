# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource to the state that a task asks for: observe, decide, send once, observe until it is so.

Keeps P2, P3, P4 and P9. What happened to the request does not decide alone: after a lost response, or a refusal because
somebody else was faster, and while a list lags, the resource is observed again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta

from ansible.module_utils.common.dict_transformations import dict_merge

from .._errors import InvalidOption, Result, will_fail
from .._http.client import SUCCESS, Client
from .._http.errors import RequestFailed, StatusError, UnexpectedResponse
from .._http.response import Response
from .._http.session import LOCKED
from .._operations.operations import Operation
from .._operations.status import SUCCEEDED
from .._operations.wait_failure import WaitFailed
from .compare import contains, differing, fields_of
from .goal import ACT, CHANGE, CREATE, DELETE, ENSURE, Goal, Resource, ResourceRequest, fill
from .journal import Journal
from .lookup import label_of, shown_resource
from .observe import Observation, observe
from .outcome import final_result, no_match, overdue, result_of, result_so_far, unknown_outcome
from .refusals import refusal_of
from .state import ABSENT, BROKEN, DELETING, DIFFERENT, PRESENT, UNFINISHED, UNSEEN, is_failed_creation
from .waiting import Waiting

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
# Statuses of requests whose fields or resource the service does not accept.
REFUSALS = frozenset({400, 403, 404, 409, 412, 422})
# For how long a list may lag, and a request whose connection broke may still be carried out.
SETTLING_SECONDS = 30.0


def reach(client: Client, goal: Goal, waiting: Waiting | None) -> Result:
    """The result of a task with this goal; without C(waiting), that of check mode.

    Raises what Client raises, ClouddbError, InvalidOption and WaitFailed.
    """
    return Engine(client, goal, waiting).run() if waiting else _preview(client, goal)


def _preview(client: Client, goal: Goal) -> Result:
    """What a task would return, by GET requests only. A resource that would be created has the id null."""
    # Without its id, which an earlier task would have created, there is nothing to look up.
    can_look_up = goal.find is not None and goal.find.has_all_values
    seen = observe(client, goal, Journal(goal)) if can_look_up else Observation(ABSENT, None)
    _require_fixed(goal, seen)
    # The task would wait for an unfinished resource. Only an action that sets its state has to do so before it compares.
    is_ready = seen.state == UNFINISHED and goal.first.sets is None
    ready = _compared(goal, seen._replace(state=PRESENT) if is_ready else seen)
    first = next(iter(goal.requests))
    step = STEPS[goal.intent].get(ready.state, WAIT) if can_look_up else first
    found, warnings = seen.resource, [*seen.warnings]
    if step == FAIL:
        step = first
        warnings.append(will_fail(f"No resource matches {goal.selector}"))
    if seen.state == BROKEN and found and step not in goal.requests:
        warnings.append(will_fail(f"The creation of {label_of(found)} has failed", "deletes it"))
    if seen.state == DELETING and goal.creates:
        # The task would wait until it is gone.
        step, found = first, None
    if step not in goal.requests:
        return result_of(found, found, warnings=warnings)
    request = goal.request(step, found)
    if refusal := refusal_of(client, goal, request):
        if not refusal.remedy:
            raise refusal.error
        warnings.append(will_fail(refusal.error, refusal.remedy))
    after = None if step == DELETE else dict_merge(found or {"id": None}, fields_of(request.wanted, found or {}))
    return result_of(found, after, changed=True, request=request.shown(found), warnings=warnings)


def _compared(goal: Goal, seen: Observation) -> Observation:
    """DIFFERENT if the resource is there, and the goal would change it."""
    comparable = (PRESENT,) if goal.wait else (PRESENT, UNFINISHED)
    return seen._replace(state=DIFFERENT) if seen.state in comparable and goal.differs(seen.resource) else seen


def _require_fixed(goal: Goal, seen: Observation) -> None:
    """Raise InvalidOption if the resource has another value of a field that cannot be changed."""
    found = seen.resource or {}
    for field, wanted in goal.fixed.items():
        # A branch with the schema only has no parent.
        is_known = seen.state in (PRESENT, UNFINISHED, DIFFERENT) and found.get(field) is not None
        if is_known and not contains(found[field], wanted):
            option = goal.options.get(field, field)
            problem = f"{label_of(found)} has {field} {found[field]}, which cannot be changed"
            raise InvalidOption(option, f"{problem}. Set {option} to this value, or omit it.")


class Engine:
    """The way to one goal of a task."""

    def __init__(self, client: Client, goal: Goal, waiting: Waiting) -> None:
        self._client, self._goal, self._waiting = client, goal, waiting
        self._past = Journal(goal)

    def run(self) -> Result:
        """Do what the goal needs; the task's result. Raises as reach()."""
        try:
            return self._run()
        except WaitFailed as failure:
            known = self._past.known
            so_far = result_so_far(self._past, self._waiting, known)
            failure.result = {**so_far, **failure.result, "elapsed": so_far["elapsed"]}
            if known and any(is_failed_creation(each, known) for each in failure.result["operations"]):
                left = f"This creation left {label_of(known)}, which is not usable. Delete it, then run the task again."
                failure.add(after=left)
            raise
        except StatusError as error:
            is_refused = error.request.method != "GET" and error.status in REFUSALS
            if is_refused and (refusal := refusal_of(self._client, self._goal, self._past.request)):
                refusal.error.details = {**error.details, **refusal.error.details}
                raise refusal.error from error
            raise

    def _run(self) -> Result:
        goal, past = self._goal, self._past
        while True:
            is_unseen = goal.find is None and not past.sent
            seen = Observation(ABSENT, None) if is_unseen else self._observe()
            step = next(iter(goal.requests)) if is_unseen else self._step(seen)
            if step == FAIL:
                raise no_match(goal, seen)
            if step == WAIT:
                self._wait(seen)
            elif step == DONE:
                past.warnings += [] if past.sent else seen.warnings
                return final_result(goal, past, self._waiting, seen)
            elif shown := self._send(step, seen.resource):
                return final_result(goal, past, self._waiting, shown)

    # Observe and decide

    def _observe(self) -> Observation:
        goal, past, waiting = self._goal, self._past, self._waiting
        known = past.subject
        try:
            seen = observe(waiting.bounded_client(), goal, past)
        except RequestFailed as error:
            seen = Observation(UNSEEN, None)
            is_passing = error.transient or isinstance(error, UnexpectedResponse)
            seconds_left = waiting.seconds_to_settle() if past.error else waiting.seconds_left()
            if is_passing and seconds_left > 0:
                return seen
            raise self._failure(seen, error) from error
        if seen.resource:
            # Only the response to a creation has some fields, such as passwords.
            shown = known if known and (goal.creates or goal.intent == ACT) else {}
            seen = seen._replace(resource={**shown, **seen.resource})
            past.known = seen.resource
        if past.changed:
            return seen
        _require_fixed(goal, seen)
        return _compared(goal, seen)

    def _step(self, seen: Observation) -> str:
        goal, past = self._goal, self._past
        under_way = DELETING if goal.intent == DELETE else UNFINISHED
        if seen.state == under_way and not goal.wait:
            return ACT if goal.intent == ACT and not past.sent else DONE
        step = STEPS[goal.intent].get(seen.state, WAIT)
        if past.sent == ACT and step == ACT:
            # Whether a lost request was carried out, only the operations that it has started show.
            return DONE if not past.error or seen.operations or past.has_waited else WAIT
        # After a refused creation, because somebody else was faster, the resource may differ.
        if not past.sent or step in (WAIT, DONE) or (step == CHANGE and past.sent == CREATE):
            return step
        # The service may ignore a field, or return another value for it than was sent.
        shown = shown_resource(past.response.json, past.request) if past.response else None
        is_ignored = shown is not None and goal.first.sets is None and bool(differing(shown, past.request.wanted))
        is_final = not past.error and (is_ignored or self._waiting.seconds_to_settle() <= 0)
        return DONE if seen.state == DIFFERENT and is_final else WAIT

    # Send

    def _send(self, step: str, found: Resource | None) -> Observation | None:
        """Send the request of this step about the resource; what the response shows, if no other observation is needed."""
        goal, past = self._goal, self._past
        past.request = request = goal.request(step, found)
        past.before = past.known = found
        past.error = None
        try:
            response = self._response(request, fill(request.segments, found or {}))
            operations = started_operations(response)
        except RequestFailed as error:
            return self._after_error(step, error)
        past.response = response
        if response.status not in SUCCESS:
            return Observation(PRESENT, found, operations)
        past.sent, past.changed, past.has_waited = step, True, False
        shown = shown_resource(response.json, request)
        past.known = shown or found
        self._waiting.begin(SETTLING_SECONDS)
        if goal.wait:
            if operations:
                self._wait_for(operations, is_own=True)
            return None
        if step == DELETE:
            return Observation(DELETING, None, operations)
        # A response that does not show the resource, or not enough of it, is followed by an observation.
        is_shown = shown and (goal.find is None or goal.find.match.keys() <= shown.keys())
        return Observation(UNFINISHED, shown, operations) if is_shown else None

    def _response(self, request: ResourceRequest, segments: Sequence[str]) -> Response:
        client, past = self._client, self._past
        # An accepted error would hide what an earlier attempt has done.
        accept = [status for status in request.accept if status in SUCCESS or not past.changed]
        began = client.clock.monotonic()
        try:
            return client.request(
                request.method, segments, request.query, request.body, accept, retry_locked=False, may_be_empty=True
            )
        finally:
            sent_at = client.service_now() - timedelta(seconds=client.clock.monotonic() - began)
            past.sent_at = past.sent_at or sent_at

    def _after_error(self, step: str, error: RequestFailed) -> Observation | None:
        """Decide what to do without a success. Raises the error if the resource cannot be as wanted nevertheless."""
        goal, past = self._goal, self._past
        status = error.status if isinstance(error, StatusError) else 0
        if status in SUCCESS:
            raise error
        past.changed = past.changed or error.may_have_acted
        if isinstance(error, StatusError) and status == LOCKED:
            self._waiting.wait_until_unlocked(error, past.changed)
            return None
        if not past.changed and not (goal.find and status in OVERTAKEN.get(step, ())):
            raise error
        if goal.find is None:
            if step == DELETE and status in GONE_STATUSES:
                return Observation(ABSENT, None)
            hint = " With find, the task looks this up automatically." if step == CREATE else ""
            raise unknown_outcome(error, f"Check whether it was, before you run the task again.{hint}")
        past.sent, past.error, past.has_waited = step, error, False
        seconds = SETTLING_SECONDS if past.changed or status in CONFLICT_STATUSES | GONE_STATUSES else 0.0
        if status in GONE_STATUSES and goal.find.segments == goal.requests[step].segments[:-1]:
            # The path is right, because its list has been fetched. So the resource is gone, and only its list lags.
            seconds = math.inf
        self._waiting.begin(seconds)
        return None

    # Wait

    def _wait(self, seen: Observation) -> None:
        """Wait for the operations that explain the state, or until the next observation."""
        waiting = self._waiting
        waiting.begin_once()
        is_explained = self._past.error is None or seen.state in (UNFINISHED, DELETING, BROKEN)
        seconds_left = waiting.seconds_left() if is_explained else waiting.seconds_to_settle()
        if seconds_left <= 0:
            raise self._failure(seen)
        if all(operation["status"] in SUCCEEDED for operation in seen.operations):
            waiting.pause(seconds_left)
        else:
            self._wait_for(seen.operations, is_own=seen.state != DELETING or self._goal.intent == DELETE)

    def _wait_for(self, operations: Sequence[Operation], is_own: bool) -> None:
        """Wait until these operations have succeeded or, unless C(is_own), ended."""
        past = self._past
        if not is_own:
            self._waiting.wait_for(operations, accepts_failure=True, accepts_gone=True)
            return
        state = self._waiting.wait_for([*past.operations, *operations], False, self._goal.intent == DELETE)
        result = state.result()
        past.operations, past.has_waited = result["operations"], True
        past.warnings += result["warnings"]

    def _failure(self, seen: Observation, unobserved: RequestFailed | None = None) -> Exception:
        """The error for a resource that is not as asked in time, or whose observation failed with C(unobserved)."""
        past = self._past
        if past.error and past.changed:
            so_far = f"This could not be looked up: {unobserved}" if unobserved else "So far, it was not."
            return unknown_outcome(past.error, f"{so_far} It is safe to run the task again.")
        if past.error and (unobserved or seen.state != DELETING):
            return past.error
        if unobserved and past.changed:
            unobserved.add(f"{past.request.line} was carried out, but its result could not be looked up.")
            unobserved.result = result_so_far(past, self._waiting, past.known)
        if unobserved:
            return unobserved
        result = result_so_far(past, self._waiting, seen.resource)
        return overdue(past.request, seen, past.known, self._waiting.timeout, result)


def started_operations(response: Response) -> list[Operation]:
    """The operations that the response names (api.md, Operations returned by other requests). Raises UnexpectedResponse."""
    named = response.json.get("operations") if isinstance(response.json, dict) else None
    return response.items("operations", id=str, project_id=str, status=str) if isinstance(named, list) else []
