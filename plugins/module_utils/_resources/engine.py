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

from .._errors import ClouddbError, Result, will_fail
from .._http.client import NO_CONTENT, SUCCESS, Client
from .._http.errors import RequestFailed, StatusError, UnexpectedResponse
from .._http.message import LOCKED
from .._http.response import Response
from .._operations.operations import Operation
from .._operations.status import FAILED, SUCCEEDED
from .._operations.wait import WaitFailed
from .._operations.waiting import Waiting
from .._timestamps import timestamp_of
from .goal import ACT, CHANGE, CREATE, DELETE, ENSURE, Goal, Refusal, Resource, ResourceRequest, fill
from .lookup import observe, with_part
from .refusals import refusal_of
from .state import (
    ABSENT,
    BROKEN,
    DELETING,
    DIFFERENT,
    PRESENT,
    UNFINISHED,
    UNSEEN,
    UNSELECTED,
    Observation,
    contains,
    is_failed_creation,
    is_since,
    label_of,
)
from .task import Task, no_match, result_of, unknown_outcome

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


class Engine:
    """The way of a task to one goal. In check mode only GET requests are sent: waits are imagined, and the request that would be
    sent ends the task. A resource that would be created has the id null. C(further) are the goals that follow this one.
    """

    def __init__(
        self, client: Client, goal: Goal, waiting: Waiting, check_mode: bool = False, further: Sequence[Goal] = ()
    ) -> None:
        self._client, self._goal, self._waiting, self._check_mode = client, goal, waiting, check_mode
        self._further = further
        self._task = Task(goal, waiting)

    def run(self, known: Resource | None = None) -> Result:
        """Do what the goal needs; the task's result. C(known) is the resource if it has just been observed.

        Raises what Client raises, ClouddbError, InvalidOption and WaitFailed.
        """
        task = self._task
        try:
            known = with_part(self._waiting.bounded_client(), self._goal.first_request, known)
            return self._run(self._compared(Observation(PRESENT, known)) if known else self._observe())
        except WaitFailed as failure:
            known = task.known
            so_far = task.result_so_far(known)
            failure.result = {**so_far, **failure.result, "elapsed": so_far["elapsed"]}
            # The operations of a snapshot are about another branch, and it does not show its state.
            is_own = task.sent == CREATE and bool(self._goal.kind and self._goal.kind.creation)
            failed = [each for each in failure.result["operations"] if each["status"] in FAILED]
            if known and any(is_own or is_failed_creation(each, known) for each in failed):
                advice = "Make another branch the default, delete it" if known.get("default") else "Delete it"
                left = f"This creation left {label_of(known)}, which is not usable. {advice}, then run the task again."
                failure.add(after=left)
            raise
        except ClouddbError as error:
            if task.changed:
                error.result = {**task.result_so_far(task.known), **error.result, "changed": True}
            is_refused = isinstance(error, StatusError) and error.request.method != "GET" and error.status in REFUSALS
            if is_refused and (refusal := self._refusal(self._goal, task.request, task.before)):
                refusal.error.details = {**error.details, **refusal.error.details}
                refusal.error.result = error.result
                raise refusal.error from error
            if is_refused:
                error.add(after=self._goal.options_in(error.details.get("message", "")))
            raise

    def _run(self, seen: Observation) -> Result:
        goal, task = self._goal, self._task
        while True:
            step = self._step(seen)
            if step == FAIL and self._check_mode:
                task.warnings.append(will_fail(no_match(goal, seen)))
                step = goal.first_step
            if step == FAIL:
                raise no_match(goal, seen)
            if step == WAIT and seen.state == BROKEN and self._check_mode:
                task.warnings.append(
                    will_fail(f"The creation of {label_of(seen.resource or {})} has failed", "deletes it")
                )
                step = DONE
            if step == DONE:
                task.warnings += [] if task.sent else seen.warnings
                return task.end(seen)
            if step == WAIT:
                seen = self._imagined(seen) if self._check_mode else self._observe_after_wait(seen)
            elif self._check_mode:
                return self._plan(step, seen)
            elif shown := self._send(step, seen.resource):
                return task.end(shown)
            else:
                seen = self._observe()

    # Observe and decide

    def _observe(self) -> Observation:
        goal, task, waiting = self._goal, self._task, self._waiting
        known = task.subject
        # In check mode, an earlier task would provide what has no value yet, such as an id.
        if not task.sent and (goal.find is None or (self._check_mode and not goal.find.has_all_values)):
            return Observation(UNSELECTED, None)
        try:
            seen = observe(task)
        except RequestFailed as error:
            seen = Observation(UNSEEN, None)
            is_passing = error.transient or isinstance(error, UnexpectedResponse)
            seconds_left = waiting.seconds_to_settle() if task.error else waiting.seconds_left()
            if is_passing and seconds_left > 0:
                return seen
            raise task.failure(seen, error) from error
        if seen.resource:
            # Only the response to a creation has some fields, such as passwords.
            shown = {**known} if known and (goal.creates or goal.intent == ACT) else {}
            shown.pop("pending_state", None)  # that of a wait
            seen = seen._replace(resource={**shown, **seen.resource})
            task.known = seen.resource
        return seen if task.changed else self._compared(seen)

    def _compared(self, seen: Observation) -> Observation:
        """DIFFERENT if the resource is there, and the goal would change it. Raises InvalidOption for a fixed field."""
        goal, found = self._goal, seen.resource or {}
        for field, wanted in goal.fixed.items() if seen.state in (PRESENT, UNFINISHED, DIFFERENT) else ():
            # A branch with the schema only has no parent.
            if found.get(field) is not None and not contains(found[field], wanted):
                raise goal.unchangeable(field, found)
        comparable = (PRESENT,) if goal.wait else (PRESENT, UNFINISHED)
        expected = goal.expected(seen.resource, seen.operations)
        is_different = seen.state in comparable and goal.differs(expected)
        return seen._replace(state=DIFFERENT, resource=expected) if is_different else seen

    def _imagined(self, seen: Observation) -> Observation:
        """What the task would observe after a wait."""
        if seen.state == DELETING:
            return Observation(ABSENT, None, [], seen.warnings)
        expected = self._goal.expected(seen.resource, seen.operations)
        return self._compared(Observation(PRESENT, expected, [], seen.warnings))

    def _step(self, seen: Observation) -> str:
        goal, task = self._goal, self._task
        if seen.state == UNSELECTED:
            return goal.first_step
        under_way = DELETING if goal.intent == DELETE else UNFINISHED
        if seen.state == under_way and not goal.wait and self._shows_request(seen):
            return ACT if goal.intent == ACT and not task.sent else DONE
        step = STEPS[goal.intent].get(seen.state, WAIT)
        if task.sent == ACT and step == ACT:
            return DONE if self._shows_request(seen) else WAIT
        # After a refused creation, because somebody else was faster, the resource may differ.
        if not task.sent or step in (WAIT, DONE) or (step == CHANGE and task.sent == CREATE):
            return step
        # The service may ignore a field, or return another value for it than was sent.
        shown = task.request.resource_in(task.response.json) if task.response else None
        is_ignored = shown is not None and not task.request.action and bool(task.request.differing(shown))
        is_final = not task.error and (is_ignored or self._waiting.seconds_to_settle() <= 0)
        return DONE if seen.state == DIFFERENT and is_final else WAIT

    def _shows_request(self, seen: Observation) -> bool:
        """Whether the observation shows that a request whose response was lost has been carried out.

        What an action does is also done by others, and their operations look like its own. So only the resource itself shows it.
        """
        task, action = self._task, self._task.request.action
        if task.error is None or action is None:
            return True
        found, before = seen.resource or {}, task.before or {}
        if action.sets_fields is not None:
            return not task.request.differing(self._goal.expected(found, seen.operations))
        times = {name: timestamp_of(found, name) for name in action.evidence if found.get(name) != before.get(name)}
        return any(
            time is not None and task.sent_at is not None and is_since(time, task.sent_at) for time in times.values()
        )

    # Check mode

    def _plan(self, step: str, seen: Observation) -> Result:
        """The result of check mode for a task that would send the request of this step. Raises the error of a certain refusal."""
        goal, found = self._goal, seen.resource
        request = goal.request(step, found)
        warnings = [*self._task.warnings, *seen.warnings]
        if refusal := self._refusal(goal, request, found):
            if not refusal.remedy:
                raise refusal.error
            warnings.append(will_fail(refusal.error, refusal.remedy))
        after = None if step == DELETE else self._planned(request, found)
        diff = request.diff(found, after)
        return result_of(found, after, changed=True, request=request.as_result(found), warnings=warnings, diff=diff)

    def _planned(self, request: ResourceRequest, found: Resource | None) -> Resource:
        planned: Resource = dict_merge(found or {"id": None}, request.planned_fields(found, self._client.service_now()))
        return planned

    def _refusal(self, goal: Goal, request: ResourceRequest, found: Resource | None) -> Refusal | None:
        return refusal_of(self._waiting.bounded_client(), goal, request, found)

    # Send

    def _send(self, step: str, found: Resource | None) -> Observation | None:
        """Send the request of this step about the resource; what the response shows, if no other observation is needed."""
        goal, task = self._goal, self._task
        task.request = request = goal.request(step, found)
        self._require_further_steps(request, found)
        task.before = task.known = found
        task.error = None
        try:
            response = self._response(request, fill(request.segments, found or {}))
            operations = started_operations(response)
        except RequestFailed as error:
            return self._after_error(step, error)
        task.response = response
        if response.status not in SUCCESS:
            return Observation(PRESENT, found, operations)
        # By the published API document, the service answers 204 to the deletion of what is gone already.
        is_gone = response.status == NO_CONTENT and response.attempts == 1 and goal.kind
        task.changed = task.changed or not (step == DELETE and is_gone)
        task.sent, task.has_waited = step, False
        shown = request.resource_in(response.json)
        task.known = shown or found
        self._waiting.begin(SETTLING_SECONDS)
        if step == CREATE and shown and goal.find and "id" not in shown:
            # The list would never show what the service has given another name.
            task.end(Observation(UNFINISHED, shown, operations))
        if goal.wait:
            if operations:
                self._wait_for(operations, is_own=True)
            return None
        if step == DELETE:
            return Observation(DELETING, None, operations)
        # A response that does not show the resource, or not enough of it, is followed by an observation.
        is_shown = shown and (goal.find is None or goal.find.match.keys() <= shown.keys())
        return Observation(UNFINISHED, shown, operations) if is_shown else None

    def _require_further_steps(self, request: ResourceRequest, found: Resource | None) -> None:
        """Raise the error of what the service would refuse after the request, so that nothing is done by halves."""
        for goal in self._further:
            planned = self._planned(request, found)
            if refusal := self._refusal(goal, goal.request(goal.first_step, planned), planned):
                raise refusal.error

    def _response(self, request: ResourceRequest, segments: Sequence[str]) -> Response:
        client, task = self._waiting.bounded_client(), self._task
        # An accepted error would hide what an earlier attempt has done.
        accept = [status for status in request.accept if status in SUCCESS or not task.changed]
        began = client.clock.monotonic()
        try:
            return client.request(
                request.method, segments, request.query, request.body, accept, retry_locked=False, may_be_empty=True
            )
        finally:
            sent_at = client.service_now() - timedelta(seconds=client.clock.monotonic() - began)
            task.sent_at = task.sent_at or sent_at

    def _after_error(self, step: str, error: RequestFailed) -> Observation | None:
        """Decide what to do without a success. Raises the error if the resource cannot be as wanted nevertheless."""
        goal, task = self._goal, self._task
        status = error.status if isinstance(error, StatusError) else 0
        if status in SUCCESS:
            raise error
        task.changed = task.changed or error.may_have_acted
        if isinstance(error, StatusError) and (status == LOCKED or error.not_ready):
            task.sent_at = task.sent_at if task.changed else None
            self._waiting.wait_until_unlocked(error, task.changed)
            return None
        if not task.changed and not (goal.find and status in OVERTAKEN.get(step, ())):
            raise error
        if goal.find is None:
            if step == DELETE and status in GONE_STATUSES:
                return Observation(ABSENT, None)
            hint = " With find, the task looks this up automatically." if step == CREATE else ""
            raise unknown_outcome(error, f"Check whether it was, before you run the task again.{hint}")
        task.sent, task.error, task.has_waited = step, error, False
        seconds = SETTLING_SECONDS if task.changed or status in CONFLICT_STATUSES | GONE_STATUSES else 0.0
        if status in GONE_STATUSES and goal.find.segments == goal.requests[step].segments[:-1]:
            # The path is right, because its list has been fetched. So the resource is gone, and only its list lags.
            seconds = math.inf
        self._waiting.begin(seconds)
        return None

    # Wait

    def _observe_after_wait(self, seen: Observation) -> Observation:
        """Wait for the operations that explain the state, or until the next observation."""
        waiting, task = self._waiting, self._task
        waiting.begin_once()
        is_explained = task.error is None or seen.state in (UNFINISHED, DELETING, BROKEN)
        seconds_left = waiting.seconds_left() if is_explained else waiting.seconds_to_settle()
        if seconds_left <= 0:
            raise task.failure(seen)
        if all(operation["status"] in SUCCEEDED for operation in seen.operations):
            waiting.pause(seconds_left)
        else:
            # After a lost response to an action, the operations may be those of others.
            is_own = self._goal.intent == DELETE if seen.state == DELETING else not (task.error and task.sent == ACT)
            self._wait_for(seen.operations, is_own)
        return self._observe()

    def _wait_for(self, operations: Sequence[Operation], is_own: bool) -> None:
        """Wait until these operations have succeeded or, unless C(is_own), ended."""
        task = self._task
        if not is_own:
            self._waiting.wait_for(operations, accepts_failure=True, accepts_gone=True)
            return
        wait = self._waiting.wait_for([*task.operations, *operations], False, self._goal.intent == DELETE)
        result = wait.result()
        task.operations, task.has_waited = result["operations"], True
        task.warnings += result["warnings"]


def started_operations(response: Response) -> list[Operation]:
    """The operations that the response names (api.md, Operations returned by other requests). Raises UnexpectedResponse."""
    named = response.json.get("operations") if isinstance(response.json, dict) else None
    return response.items("operations", id=str, project_id=str, status=str) if isinstance(named, list) else []
