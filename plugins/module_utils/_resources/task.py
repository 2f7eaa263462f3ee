# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task on its way to a goal: what it has sent and seen so far, and how it ends, in a result or an error. Keeps P2, P3 and P11."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from .._errors import ClouddbError, Result, sentence
from .._http.errors import RequestFailed
from .._http.response import Response
from .._lists import ResourceNotFound
from .._operations.operations import Operation
from .._operations.wait import WaitFailed
from .._operations.waiting import Waiting
from .._untrusted import displayable
from .goal import CHANGE, CREATE, Goal, Resource
from .state import ABSENT, DELETING, UNFINISHED, Observation, changed_fields, contains, differences, label_of


class Task:
    """What a task has done about one goal, in the time of C(waiting)."""

    def __init__(self, goal: Goal, waiting: Waiting) -> None:
        self.goal, self.waiting = goal, waiting
        # The request that was sent, or that would be first.
        self.request = goal.first_request
        # The step whose request was sent, other than to a locked project: it is not sent again.
        self.sent: str | None = None
        # When the request was first sent, by the service's clock.
        self.sent_at: datetime | None = None
        # Whether the service has carried it out, or may have.
        self.changed = False
        # What went wrong with the request, until an observation shows that nothing did.
        self.error: RequestFailed | None = None
        self.response: Response | None = None
        # The resource before the request, and as it was last seen.
        self.before: Resource | None = None
        self.known: Resource | None = None
        # The operations about the resource, and whether they were waited for.
        self.operations: list[Operation] = []
        self.has_waited = False
        self.warnings: list[str] = []

    @property
    def subject(self) -> Resource | None:
        """What is known of the resource that the request was about; None before the request, which may be about another one."""
        return (self.known or {}) if self.sent or self.changed else None

    def result_so_far(self, resource: Resource | None) -> Result:
        """The result as it is so far."""
        response = self.response
        return result_of(
            self.before,
            resource,
            changed=self.changed,
            json=response.json if response else None,
            status=response.status if response else None,
            operations=self.operations,
            elapsed=self.waiting.elapsed(),
            polls=self.waiting.polls,
            request=self.request.as_result(self.before) if self.changed or response else None,
            warnings=self.warnings,
        )

    def end(self, seen: Observation) -> Result:
        """The result at the end. Raises ClouddbError if the task would not find what it has created."""
        goal, request, before, resource = self.goal, self.request, self.before, seen.resource
        changed, warnings = self.changed, [*self.warnings]
        # What was accepted without a wait is changed, and its operations may still set the fields.
        is_begun = not goal.wait and bool(request.action or seen.operations)
        if changed and self.response is None:
            warnings.append(f"The response to {request.line} was lost, but the service has carried out the request.")
        elif changed and self.sent == CHANGE and before and resource and not is_begun:
            pairs = [(before.get(name), resource.get(name)) for name in request.fields(before)]
            is_same = all(contains(old, new) and contains(new, old) for old, new in pairs)
            changed = not goal.wait or bool(request.action) or not is_same
            warnings += self._ignored_fields(resource)
        after = request.planned_fields(before, self.sent_at) if is_begun and resource else resource
        result = {
            **self.result_so_far(resource),
            "changed": changed,
            "operations": list({each["id"]: each for each in [*self.operations, *seen.operations]}.values()),
            "diff": request.diff(before, after) if self.changed else {"before": {}, "after": {}},
            "warnings": warnings,
        }
        match = goal.find.match if goal.find and self.sent == CREATE and self.changed else {}
        if resource and not contains(resource, match):
            raise self._created_differently(resource, match, result)
        return result

    def _ignored_fields(self, resource: Resource) -> list[str]:
        """The warning about fields that are not as the request has set them."""
        request, names = self.request, self.request.differing(resource)
        if request.action and names:
            values = " and ".join(f"{name} is {displayable(resource.get(name), 100)} again" for name in names)
            return [f"{request.line} was carried out, but {values}."]
        wanted, option_of = request.fields(resource), self.goal.option_of
        paths = [each for name in names for each in differences(resource.get(name), wanted[name], option_of(name))]
        fields = ", ".join(displayable(path, 100) for path, _hint in paths)
        hints = " ".join(displayable(hint, 500) for _path, hint in paths if hint) or "Check their names and values."
        problem = f"{request.line} was accepted, but the resource differs in: {fields}. {hints}"
        return [problem] if names else []

    def _created_differently(self, resource: Resource, match: Any, result: Result) -> ClouddbError:
        """The error for a resource that the service has created with other values than those that the task looks for."""
        stored = ", ".join(
            f"{displayable(name, 100)} is {displayable(resource.get(name), 100)!r}, not {displayable(wanted, 100)!r}"
            for name, wanted in match.items()
            if not contains(resource.get(name), wanted)
        )
        created = f"{self.request.line} created {label_of(resource)}"
        problem = f"{created}, which {self.goal.selector} does not match: {stored}."
        advice = "Each run would create another resource. Use the service's values."
        return ClouddbError("no_match", f"{problem} {advice}", {}, result)

    def failure(self, seen: Observation, unobserved: RequestFailed | None = None) -> Exception:
        """The error for a resource that is not as asked in time, or whose observation failed with C(unobserved)."""
        if self.error and self.changed:
            return unknown_outcome(self.error, self._how_to_find_out(seen, unobserved))
        if self.error and (unobserved or seen.state != DELETING):
            return self.error
        if unobserved and self.changed:
            unobserved.add(f"{self.request.line} was carried out, but its result could not be looked up.")
            unobserved.result = self.result_so_far(self.known)
        return unobserved or self._overdue(seen)

    def _how_to_find_out(self, seen: Observation, unobserved: RequestFailed | None) -> str:
        """What to do about a request that may have been carried out."""
        action = self.request.action
        if unobserved:
            return f"This could not be looked up: {unobserved} It is safe to run the task again."
        has_evidence = action and any((seen.resource or {}).get(name) for name in action.evidence)
        if action and action.sets_fields is None and not has_evidence:
            return "Nothing shows whether it was. Check this before you run the task again."
        return "So far, it was not. It is safe to run the task again."

    def _overdue(self, seen: Observation) -> WaitFailed:
        """The error for a resource that has not become what the task asks for."""
        resource, line = seen.resource or self.known, self.request.line
        name = label_of(resource) if resource else "the resource"
        problem = {
            ABSENT: f"{line} was accepted, but the list does not show {name}",
            DELETING: f"{name} is still being deleted",
            UNFINISHED: f"{name} is not ready",
        }.get(seen.state, f"{line} was accepted, but the list still shows {name}")
        advice = f"after {round(self.waiting.timeout, 1):g} s. Run the task again later, or increase timeout."
        result = {**self.result_so_far(seen.resource), "failed_ids": [], "pending_ids": []}
        return WaitFailed("wait_failed", f"{problem} {advice}", {}, result)


def result_of(before: Resource | None = None, after: Resource | None = None, **fields: Any) -> Result:
    """The result of a task, by default of one that has done nothing."""
    return {
        "changed": False,
        "json": None,
        "status": None,
        "object": after,
        "operations": [],
        "elapsed": 0.0,
        "polls": 0,
        "request": None,
        "diff": changed_fields(before or {}, after or {}),
        "warnings": [],
        **fields,
    }


def no_match(goal: Goal, seen: Observation) -> ClouddbError:
    """The error for a request that needs a resource."""
    line = goal.first_request.line
    if seen.resource:
        return ClouddbError("no_match", f"{label_of(seen.resource)} is being deleted, so {line} cannot change it.")
    if goal.kind:
        option = goal.selector.split()[0]
        return ResourceNotFound(f"{option}: {sentence(goal.missing)}", {"option": option})
    hint = " ".join(seen.warnings) or "Check the values in find.match."
    return ClouddbError("no_match", f"No resource matches find for {line}. {hint}")


def unknown_outcome(error: RequestFailed, advice: str) -> ClouddbError:
    """The error for a request that may have been carried out."""
    message = f"{error} The service may have carried out the request. {advice}"
    return ClouddbError("unknown_outcome", message, error.details)
