# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a resource to the state that a task asks for: observe, decide, send once, observe until it is so.

Keeps P2, P3, P4 and P9. What happened to the request decides nothing by itself: after a lost response, or a refusal because
somebody else was faster, and while a list lags, the resource is observed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from .._clock import Deadline
from .._errors import LOCKED, ClouddbError, InvalidOption, NotFound, RequestFailed, StatusError, UnexpectedResponse
from .._http.client import SUCCESS, Client, path_of
from .._http.response import Response
from .._operations.api import Operation
from .._operations.status import SUCCEEDED
from .._operations.wait import LAST_POLL_SECONDS, Limits, StopWhen, Wait, poll_interval
from .._operations.wait_failure import WaitFailed
from .._operations.wait_state import UnfinishedOperations, WaitState
from .._timestamps import parse_timestamp
from .._untrusted import displayable
from .compare import changed_fields, contains, differing, fields_of, has_values
from .lookup import name_of, shown_resource
from .observe import Observation, observe, with_operations
from .path import fill, is_complete, project_of
from .plan import Plan, Resource
from .state import ABSENT, BROKEN, COMING, DIFFERENT, GOING, LOOKBACK, PRESENT, own_state

Result = dict[str, Any]

SEND, WAIT, DONE, FAIL = "send", "wait", "done", "fail"
# What to do in each state. Once the request has been sent, SEND becomes WAIT.
STEPS = {
    "POST": {ABSENT: SEND, COMING: WAIT, PRESENT: DONE, GOING: WAIT, BROKEN: WAIT},
    "PATCH": {ABSENT: FAIL, COMING: WAIT, PRESENT: DONE, GOING: FAIL, BROKEN: WAIT, DIFFERENT: SEND},
    "DELETE": {ABSENT: DONE, COMING: SEND, PRESENT: SEND, GOING: WAIT, BROKEN: SEND},
}
STEPS["PUT"] = STEPS["PATCH"]
# The state that calls for the request, for a task without find.
NEEDS_REQUEST = {"POST": ABSENT, "PATCH": DIFFERENT, "PUT": DIFFERENT, "DELETE": PRESENT}
# Refusals after which the resource may be there (POST) or gone (DELETE), because somebody else was faster.
OVERTAKEN = {"POST": frozenset({400, 409, 412, 422}), "DELETE": frozenset({404, 409, 410, 412})}
CONFLICT, GONE = frozenset({409, 412}), frozenset({404, 410})
# For how long a list may lag, and a request whose connection broke may still be carried out.
SETTLING_SECONDS = 30.0
CHECK_FIRST = "Check whether it was, before you run the task again."
MAX_NAMED = 20
# The fields of a result that only the run knows that got the response.
OF_THE_RESPONSE = frozenset({"json", "status", "request"})


class NoMatch(ClouddbError):
    """No resource matches C(find), and the request needs one; or the one that it created does not match."""

    kind = "no_match"


class Locked(ClouddbError):
    """The project was locked until C(lock_timeout) was over."""

    kind = "locked"


class UnknownOutcome(ClouddbError):
    """The service may have carried out the request, and nothing shows whether it has."""

    kind = "unknown_outcome"


class Memory:
    """What has happened so far, in values that JSON can express: another process can continue from it.

    - C(sent): whether the request was sent, other than to a locked project. It is not sent again.
    - C(changed): whether the service has carried it out, or may have; C(is_accepted): whether it has said so.
    - C(since): when it was sent, by the service's clock.
    - C(before), C(known): the resource as it was, and as it was last known; C(known) identifies it from then on.
    - C(is_named): whether the response had a list of operations.
    - C(deadline), C(lock_deadline): of the monotonic clock, which all processes of a machine share; null until a wait begins.
    """

    def __init__(self, **saved: Any) -> None:
        self.sent = self.changed = self.is_accepted = self.is_named = False
        self.since: str | None = None
        self.before: Resource | None = None
        self.known: Resource | None = None
        self.deadline: float | None = None
        self.lock_deadline: float | None = None
        self.waited = 0.0
        self.polls = 0
        vars(self).update(saved)


class Engine:
    """One run of a task. C(memory) is what the next run has to know; the rest belongs to this one.

    C(error) is what went wrong with the request, until an observation shows that nothing did; C(settled_at) is when that has
    to be known.
    """

    def __init__(
        self,
        client: Client,
        plan: Plan,
        limits: Limits,
        timeout: float,
        lock_timeout: float,
        stop_when: StopWhen | None = None,
    ) -> None:
        self._client, self._plan, self._limits, self._stop_when = client, plan, limits, stop_when
        self._timeout, self._lock_timeout = timeout, lock_timeout
        self._memory = Memory()
        self._response: Response | None = None
        self._error: RequestFailed | None = None
        self._settled_at = 0.0
        self._operations: list[Operation] = []
        self._locking: list[str] = []
        self._pauses = 0
        self._changes: list[Operation] = []
        self._warnings: list[str] = []
        # What this run knows of the resource, whether the request was sent by an earlier run, and how long that one waited.
        self._resource: Resource | None = None
        self._is_resumed = False
        self._shown = 0.0

    def run(self, saved: Mapping[str, Any] | None = None) -> Result:
        """Do what the plan asks for; the task's result. C(saved) is the C(_state) of a result that C(stop_when) ended early.

        Raises what Client raises, AmbiguousMatch, IncompleteList, NoMatch, Locked, UnknownOutcome and WaitFailed.
        """
        result = self._resume(saved) if saved else None
        while result is None:
            seen = self._observe()
            step = self._step(seen)
            if step == FAIL:
                raise no_match(self._plan, seen)
            if step == DONE:
                self._warnings += [] if self._memory.sent else unknown_field_warnings(self._plan, seen)
                result = self._result(seen.resource, seen.operations)
            else:
                result = self._send(seen) if step == SEND else self._wait(seen)
        return result

    # Observe and decide

    def _observe(self) -> Observation:
        plan, memory = self._plan, self._memory
        if plan.find is None and not memory.sent:
            return Observation(NEEDS_REQUEST[plan.method], None)
        try:
            if plan.find is None and plan.method != "DELETE" and not self._may_have_changed(memory.known):
                seen = Observation(PRESENT, memory.known)
            else:
                seen = observe(self._patient_client(), plan, memory.known if memory.sent else None)
            if self._needs_operations(seen):
                since = parse_timestamp(memory.since) if memory.since else None
                seen = with_operations(self._patient_client(), plan, seen, memory.known, since)
        except RequestFailed as error:
            is_passing = error.transient or isinstance(error, UnexpectedResponse)
            if is_passing and memory.deadline is not None and self._seconds_left() > 0:
                return Observation(COMING, memory.known)
            raise self._unobserved(error) from error
        if plan.method == "POST" and memory.is_accepted and memory.known and seen.resource:
            # Only the response to a creation shows some fields, such as passwords.
            seen = seen._replace(resource={**memory.known, **seen.resource})
        self._resource = seen.resource
        return seen

    def _patient_client(self) -> Client:
        """The client, whose requests end by the deadline once there is one."""
        client, deadline = self._client, self._memory.deadline
        if deadline is None:
            return client
        return client.with_deadline(Deadline(client.clock, deadline + LAST_POLL_SECONDS), retries=True)

    def _may_have_changed(self, shown: Resource | None) -> bool:
        """Whether the resource can be another one now than the response has shown, and can be fetched."""
        return shown is not None and bool(self._operations or own_state(shown) != PRESENT)

    def _needs_operations(self, seen: Observation) -> bool:
        if self._plan.method == "DELETE" and not self._memory.changed and self._error is None:
            return False
        return not (self._memory.is_named or self._operations) or (seen.state == COMING and not self._operations)

    def _step(self, seen: Observation) -> str:
        step = STEPS[self._plan.method][seen.state]
        if not self._plan.wait and (seen.state == COMING or (seen.state == GOING and seen.resource is None)):
            return DONE
        if step != SEND or not self._memory.sent:
            return step
        # The service may ignore a field, or return another value for it than was sent.
        is_final = seen.state == DIFFERENT and self._error is None and (self._response_differs() or self._is_settled())
        return DONE if is_final else WAIT

    def _response_differs(self) -> bool:
        shown = shown_resource(self._response, self._plan) if self._response else None
        return shown is not None and bool(differing(shown, self._plan.body))

    # Send

    def _send(self, seen: Observation) -> Result | None:
        """Send the request; the result if the task, or this run of it, is over."""
        plan, memory, clock = self._plan, self._memory, self._client.clock
        memory.before = memory.known = seen.resource
        began = clock.monotonic()
        # An accepted error would hide what an earlier attempt has done.
        accept = [status for status in plan.accept if status in SUCCESS or not memory.changed]
        try:
            response = self._client.request(
                plan.method,
                fill(plan.segments, seen.resource or {}),
                plan.query,
                plan.body,
                accept=accept,
                retry_locked=False,
                may_be_empty=True,
            )
            operations = started_operations(response)
        except RequestFailed as error:
            self._set_since(began)
            return self._after_error(error)
        self._response = response
        if response.status not in SUCCESS:
            return self._result(seen.resource, operations)
        self._set_since(began)
        memory.sent = memory.changed = memory.is_accepted = True
        memory.is_named = isinstance(response.json, dict) and isinstance(response.json.get("operations"), list)
        shown = shown_resource(response, plan)
        if shown is not None and (plan.method == "POST" or _is_same(shown, seen.resource)):
            memory.known = shown
        self._begin_waiting(SETTLING_SECONDS)
        if not plan.wait:
            return self._result(None if plan.method == "DELETE" else memory.known, operations)
        return self._poll(operations, is_own=True) if operations else None

    def _set_since(self, began: float) -> None:
        clock = self._client.clock
        since = self._client.service_now() - timedelta(seconds=clock.monotonic() - began)
        self._memory.since = self._memory.since or since.isoformat()

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
            if plan.method == "DELETE" and status in GONE:
                return self._result(None)
            raise self._unknown_outcome(
                f"{CHECK_FIRST}{' With find, the task looks this up by itself.' if plan.method == 'POST' else ''}"
            )
        memory.sent = True
        seconds = SETTLING_SECONDS if memory.changed or status in CONFLICT | GONE else 0.0
        if status in GONE and plan.find.segments == plan.segments[:-1]:
            # The path is right, because its list has been fetched, so the resource is gone and only its list lags.
            seconds = self._timeout
        self._begin_waiting(seconds)
        return None

    # Wait

    def _begin_waiting(self, seconds_to_settle: float) -> None:
        memory, now = self._memory, self._client.clock.monotonic()
        if memory.deadline is None:
            memory.deadline = now + self._timeout
        self._settled_at = now + seconds_to_settle

    def _seconds_left(self) -> float:
        return (self._memory.deadline or 0.0) - self._client.clock.monotonic()

    def _is_settled(self) -> bool:
        return self._client.clock.monotonic() >= min(self._settled_at, self._memory.deadline or 0.0)

    def _wait(self, seen: Observation) -> Result | None:
        """Wait for the operations that explain the state, or until the next observation; the result if this run is over."""
        if self._memory.deadline is None:
            self._begin_waiting(self._timeout)
        is_unexplained = self._error is not None and seen.state in (ABSENT, PRESENT, DIFFERENT)
        if self._seconds_left() <= 0 or (is_unexplained and self._is_settled()):
            raise self._overdue(seen)
        unfinished = [operation for operation in seen.operations if operation["status"] not in SUCCEEDED]
        if not unfinished:
            return self._pause(self._settled_at if is_unexplained else math.inf)
        try:
            return self._poll(seen.operations, is_own=seen.state != GOING or self._plan.method == "DELETE")
        except WaitFailed as failure:
            if seen.state == BROKEN and seen.resource:
                left = f"This creation left {name_of(seen.resource)}, which is not usable. Delete it, then run the task again."
                failure.args = (f"{failure} {left}",)
            raise

    def _pause(self, until: float = math.inf, at_least: float = 0.0) -> Result | None:
        clock, memory = self._client.clock, self._memory
        self._pauses += 1
        limit = memory.lock_deadline if memory.deadline is None else memory.deadline
        seconds = max(poll_interval(self._pauses, self._limits.interval), at_least)
        began = clock.monotonic()
        clock.sleep(max(0.0, min(seconds, until - began, (limit or began) - began)))
        memory.waited += clock.monotonic() - began
        is_long = self._stop_when is not None and memory.waited - self._shown >= self._stop_when.max_seconds
        return self._paused([]) if is_long and self._error is None else None

    def _poll(self, operations: Sequence[Operation], is_own: bool) -> Result | None:
        """Wait until these operations have succeeded, or ended at least unless C(is_own); the result if this run is over."""
        wait = WaitState(self._client.clock, max(0.0, self._seconds_left()), accepts_failure=not is_own)
        known = self._operations if is_own else []
        for operation in {operation["id"]: operation for operation in [*known, *operations]}.values():
            wait.expect(operation)
        return self._continue(wait)

    def _continue(self, wait: WaitState) -> Result | None:
        is_own = not wait.accepts_failure
        try:
            result = Wait(self._client, self._limits, wait).run(self._stop_when)
        except WaitFailed as failure:
            is_gone = failure.kind == NotFound.kind and (self._plan.method == "DELETE" or not is_own)
            # After the deadline of a lock, the request is sent once more.
            if not is_gone and (is_own or wait.remaining() > 0):
                failure.result = {**self._fields(self._memory.known or self._resource), **failure.result}
                raise
            result = {"operations": wait.result()["operations"]}
        changes = result.get("_changes", [])
        if "_state" in result or (changes and not is_own):
            # The changes of other operations are shown before the request is sent.
            return self._paused(result["operations"], wait if "_state" in result else None, changes, wait.elapsed())
        self._memory.waited += wait.elapsed()
        self._memory.polls += wait.polls
        if is_own:
            self._operations = result["operations"]
            self._changes += changes
            self._warnings += result.get("warnings", [])
        return None

    def _wait_until_unlocked(self, error: StatusError) -> Result | None:
        """Wait for the unfinished operations of the project; the result if this run is over. Raises Locked."""
        memory, clock = self._memory, self._client.clock
        memory.deadline = None
        if memory.lock_deadline is None:
            memory.lock_deadline = clock.monotonic() + self._lock_timeout
        remaining = memory.lock_deadline - clock.monotonic()
        if remaining <= 0:
            raise self._locked(error)
        project_id = project_of(error.details["path"].split("/")[1:])
        self._locking = []
        if project_id:
            unlisted = UnfinishedOperations(project_id, LOOKBACK.total_seconds())
            wait = WaitState(clock, remaining, (), unlisted, accepts_failure=True)
            if (result := self._continue(wait)) is not None:
                return result
            self._locking = [ref.id for ref in wait.not_succeeded()]
            if wait.operations:
                return None
        return self._pause(at_least=error.retry_after or 0.0)

    def _resume(self, saved: Mapping[str, Any]) -> Result | None:
        try:
            self._memory = Memory(**saved["memory"])
            wait = WaitState.from_json(self._client.clock, saved["wait"]) if saved["wait"] else None
        except (KeyError, TypeError):
            raise InvalidOption("_state", "is not what an earlier run of the module returned") from None
        self._is_resumed = self._memory.sent
        self._shown = self._memory.waited
        self._settled_at = self._client.clock.monotonic() + SETTLING_SECONDS
        return self._continue(wait) if wait else None

    # Results and errors

    def _paused(
        self,
        operations: list[Operation],
        wait: WaitState | None = None,
        changes: Sequence[Any] = (),
        elapsed: float = 0.0,
    ) -> Result:
        """The result of a run that another one continues."""
        memory = self._memory
        deadline = memory.lock_deadline if memory.deadline is None else memory.deadline
        state = {
            "memory": vars(memory),
            "wait": wait.to_json() if wait else None,
            "remaining": max(0.0, (deadline or 0.0) - self._client.clock.monotonic()),
            "is_sent": memory.sent,
        }
        fields = {**self._fields(memory.known), "operations": operations, "elapsed": round(memory.waited + elapsed, 3)}
        if self._response is None:
            fields = {name: value for name, value in fields.items() if name not in OF_THE_RESPONSE}
        return {**fields, "_state": state, "_changes": list(changes)}

    def _result(self, resource: Resource | None, operations: Sequence[Operation] = ()) -> Result:
        """The task's result. Raises NoMatch if C(find) would not find what was created."""
        plan, memory = self._plan, self._memory
        if not memory.changed and self._response is None:
            memory.before = resource
        if (
            plan.method == "POST"
            and memory.changed
            and plan.find
            and resource
            and not contains(resource, plan.find.match)
        ):
            raise self._not_matching(resource, plan.find.match)
        if memory.changed and not memory.is_accepted:
            evidence = ", as its list shows" if plan.find else ""
            self._warnings.append(
                f"The response to {plan.name} was lost. The service has carried out the request{evidence}."
            )
        elif plan.changes and memory.changed and memory.before and resource:
            memory.changed = any(
                memory.before.get(name) != resource.get(name) for name in fields_of(plan.body, memory.before)
            )
            if names := differing(resource, plan.body):
                self._warnings.append(
                    f"{plan.name} was accepted, but the resource differs from body in: {', '.join(map(displayable, names))}. "
                    "Check the names and the values of these fields."
                )
        result = self._fields(resource)
        result["operations"] = self._operations or list(operations)
        if self._stop_when:
            result["_changes"] = self._changes
        return result

    def _fields(self, resource: Resource | None) -> Result:
        """The fields of a result, also of one that is not final. What only an earlier run knows is left out."""
        memory, response = self._memory, self._response
        is_sent = memory.changed or response is not None
        fields = {
            "changed": memory.changed,
            "object": resource,
            "operations": self._operations,
            "elapsed": round(memory.waited, 3),
            "polls": memory.polls,
            "diff": changed_fields(memory.before or {}, resource or {}),
            "warnings": self._warnings,
            "json": response.json if response else None,
            "status": response.status if response else None,
            "request": self._plan.request(memory.before) if is_sent else None,
        }
        return {name: value for name, value in fields.items() if not (self._is_resumed and name in OF_THE_RESPONSE)}

    def _overdue(self, seen: Observation) -> ClouddbError:
        """The error for a state that did not become the wanted one in time."""
        plan, memory = self._plan, self._memory
        if self._error and memory.changed:
            return self._unknown_outcome("So far, it was not. It is safe to run the task again.")
        if self._error and seen.state != GOING:
            return self._error
        resource = seen.resource or memory.known
        name = name_of(resource) if resource else "the resource"
        problem = {
            ABSENT: f"{plan.name} was accepted, but the list does not show {name}",
            GOING: f"{name} is still being deleted",
            COMING: f"{name} is not ready",
        }.get(seen.state, f"{plan.name} was accepted, but the list still shows {name}")
        return WaitFailed(
            f"{problem} after {self._timeout:g} s. Run the task again later, or increase timeout.",
            {},
            {**self._fields(seen.resource), "failed_ids": [], "pending_ids": []},
        )

    def _unobserved(self, error: RequestFailed) -> ClouddbError:
        """The error for a resource that could not be observed."""
        if self._error and self._memory.changed:
            return self._unknown_outcome(f"This could not be looked up: {error} It is safe to run the task again.")
        if self._memory.changed:
            error.args = (f"{self._plan.name} was carried out, but its result could not be looked up. {error}",)
            error.result = self._fields(self._memory.known)
        return self._error or error

    def _unknown_outcome(self, advice: str) -> UnknownOutcome:
        error = self._error
        assert error
        return UnknownOutcome(f"{error} The service may have carried out the request. {advice}", error.details)

    def _not_matching(self, resource: Resource, match: Mapping[str, Any]) -> NoMatch:
        stored = "; ".join(
            f"{displayable(name, 100)} is {displayable(resource.get(name), 100)!r}, not {displayable(wanted, 100)!r}"
            for name, wanted in match.items()
            if not contains(resource.get(name), wanted)
        )
        problem = f"{self._plan.name} created {name_of(resource)}, which find does not match: {stored}."
        advice = "Each run would create another resource. Use the service's values in find.match and body."
        return NoMatch(f"{problem} {advice}", {}, self._fields(resource))

    def _locked(self, error: StatusError) -> Locked:
        message = f"{error} The project stayed locked for {self._lock_timeout:g} s (lock_timeout)"
        message += "." if self._memory.changed else ", so the request was not carried out."
        if self._locking:
            message += f" Unfinished operations of the project: {', '.join(self._locking[:MAX_NAMED])}."
        return Locked(f"{message} Run the task again later, or increase lock_timeout.", error.details)


def no_match(plan: Plan, seen: Observation | None = None) -> NoMatch:
    """The error for a request that needs a resource."""
    if seen and seen.resource:
        return NoMatch(f"{name_of(seen.resource)} is being deleted, so {plan.name} cannot change it.")
    return NoMatch(f"No resource matches find for {plan.name}. Check find.match and find.path.")


def started_operations(response: Response) -> list[Operation]:
    """The operations that the request started (api.md, Operations returned by other requests). Raises UnexpectedResponse."""
    if not isinstance(response.json, dict) or response.json.get("operations") is None:
        return []
    return response.items("operations", id=str, project_id=str, status=str)


def _is_same(shown: Resource, found: Resource | None) -> bool:
    return found is None or shown.get("id") == found.get("id")


def predict(client: Client, plan: Plan) -> Result:
    """What a task would do, for check mode; sends GET requests only. A resource that would be created has the id null."""
    # Without its id, which an earlier task would have created, there is nothing to look up.
    is_known = (
        plan.find is not None and is_complete(plan.find.segments) and has_values([plan.find.match, plan.find.query])
    )
    seen = observe(client, plan) if is_known else Observation(NEEDS_REQUEST[plan.method], None)
    if plan.method != "DELETE":
        seen = with_operations(client, plan, seen)
    step, found, warnings = STEPS[plan.method][seen.state], seen.resource, unknown_field_warnings(plan, seen)
    if is_known and step == FAIL:
        warnings.append(f"No resource matches find. Unless an earlier task creates it, {plan.name} will fail.")
    if seen.state == BROKEN and step == WAIT:
        failed = f"The creation of {name_of(found or {})} has failed"
        warnings.append(f"{failed}. Unless an earlier task deletes it, {plan.name} will fail.")
    changed = step in (SEND, FAIL) or (plan.method == "POST" and seen.state == GOING)
    before, after = found, found
    if changed and plan.method == "DELETE":
        after = None
    elif changed:
        before = None if seen.state == GOING else found
        after = {**(before or {"id": None}), **fields_of(plan.body, before or {})}
    return {
        "changed": changed,
        "json": None,
        "status": None,
        "object": after,
        "operations": [],
        "elapsed": 0.0,
        "polls": 0,
        "request": plan.request(before) if changed else None,
        "diff": changed_fields(before or {}, after or {}),
        "warnings": warnings,
    }


def unknown_field_warnings(plan: Plan, seen: Observation) -> list[str]:
    """A warning if nothing is deleted because no resource has a field of C(find.match)."""
    if plan.method != "DELETE" or not (plan.find and seen.unknown_fields):
        return []
    fields = " or ".join(seen.unknown_fields)
    problem = f"No resource of the list {path_of(plan.find.segments)} has the field {fields} of find.match"
    return [f"{problem}, so {plan.name} was not sent. Check the field's name."]
