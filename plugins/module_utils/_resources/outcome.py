# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a task ends: its result, and its errors with what to do. Keeps P3 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from .._errors import ClouddbError, Result, sentence
from .._http.errors import RequestFailed
from .._lists import ResourceNotFound
from .._operations.wait_failure import WaitFailed
from .._untrusted import displayable
from .compare import changed_fields, contains
from .goal import CHANGE, CREATE, DELETE, Goal, Resource, ResourceRequest
from .journal import Journal
from .lookup import label_of
from .observe import Observation
from .state import ABSENT, DELETING, UNFINISHED
from .waiting import Waiting


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


def result_so_far(past: Journal, waiting: Waiting, resource: Resource | None) -> Result:
    """The result of a task as it is so far."""
    response = past.response
    return result_of(
        past.before,
        resource,
        changed=past.changed,
        json=response.json if response else None,
        status=response.status if response else None,
        operations=past.operations,
        elapsed=waiting.elapsed(),
        polls=waiting.polls,
        request=past.request.shown(past.before) if past.changed or response else None,
        warnings=past.warnings,
    )


def final_result(goal: Goal, past: Journal, waiting: Waiting, seen: Observation) -> Result:
    """The result of a task at its end. Raises ClouddbError if C(find) would not find what was created."""
    request, before, resource = past.request, past.before, seen.resource
    changed, warnings = past.changed, [*past.warnings]
    # What was accepted without a wait is changed, and its operations may still set the fields.
    is_begun = not goal.wait and bool(request.action or seen.operations)
    if changed and past.response is None:
        warnings.append(f"The response to {request.line} was lost, but the service has carried out the request.")
    elif changed and past.sent == CHANGE and before and resource and not is_begun:
        pairs = [(before.get(name), resource.get(name)) for name in request.fields(before)]
        is_same = all(contains(old, new) and contains(new, old) for old, new in pairs)
        changed = not goal.wait or bool(request.action) or not is_same
        if ignored := request.differing(resource):
            warnings.append(ignored_fields_warning(goal, request, ignored, resource))
    result = {
        **result_so_far(past, waiting, resource),
        "changed": changed,
        "operations": list({each["id"]: each for each in [*past.operations, *seen.operations]}.values()),
        "warnings": warnings,
    }
    after = {**resource, **planned_fields(request, before, past.sent_at)} if is_begun and resource else resource
    result["diff"] = diff_of(past.sent, request, before, after) if past.changed else {"before": {}, "after": {}}
    match = goal.find.match if goal.find and past.sent == CREATE and past.changed else {}
    if resource and not contains(resource, match):
        raise created_differently(goal, resource, match, result)
    return result


def planned_fields(request: ResourceRequest, found: Resource | None, now: datetime | None) -> dict[str, Any]:
    """The fields that a request will have set: those that it has, and the time that shows an action."""
    evidence = request.action.evidence if request.action else ()
    return {**request.fields(found or {}), **dict.fromkeys(evidence, f"{now:%Y-%m-%dT%H:%M:%SZ}" if now else None)}


def diff_of(
    step: str | None, request: ResourceRequest, before: Resource | None, after: Resource | None
) -> dict[str, dict[str, Any]]:
    """The diff of a task: what was deleted, or the fields that the request sets."""
    if step == DELETE:
        return changed_fields(before or {}, {})
    evidence = request.action.evidence if request.action else ()
    names = {*request.fields(before or {}), *evidence}
    return changed_fields(*({name: each.get(name) for name in names} if each else {} for each in (before, after)))


def ignored_fields_warning(goal: Goal, request: ResourceRequest, names: Sequence[str], resource: Resource) -> str:
    """The warning about fields that are not as the request has set them."""
    if request.action:
        values = " and ".join(f"{name} is {displayable(resource.get(name), 100)} again" for name in names)
        return f"{request.line} was carried out, but {values}."
    fields = ", ".join(displayable(goal.options.get(name, name), 100) for name in names)
    return f"{request.line} was accepted, but the resource differs in: {fields}. Check their names and values."


def no_match(goal: Goal, seen: Observation) -> ClouddbError:
    """The error for a request that needs a resource."""
    if seen.resource:
        problem = f"{label_of(seen.resource)} is being deleted"
        return ClouddbError("no_match", f"{problem}, so {goal.first.line} cannot change it.")
    if goal.find and not goal.find.is_option:
        option = goal.selector.split()[0]
        return ResourceNotFound(f"{option}: {sentence(goal.missing)}", {"option": option})
    hint = " ".join(seen.warnings) or "Check the values in find.match."
    return ClouddbError("no_match", f"No resource matches find for {goal.first.line}. {hint}")


def created_differently(goal: Goal, resource: Resource, match: Mapping[str, Any], result: Result) -> ClouddbError:
    """The error for a resource that the service has created with other values than those of C(find.match)."""
    stored = ", ".join(
        f"{displayable(name, 100)} is {displayable(resource.get(name), 100)!r}, not {displayable(wanted, 100)!r}"
        for name, wanted in match.items()
        if not contains(resource.get(name), wanted)
    )
    problem = f"{goal.first.line} created {label_of(resource)}, which {goal.selector} does not match: {stored}."
    advice = "Each run would create another resource. Use the service's values."
    return ClouddbError("no_match", f"{problem} {advice}", {}, result)


def unknown_outcome(error: RequestFailed, advice: str) -> ClouddbError:
    """The error for a request that may have been carried out."""
    message = f"{error} The service may have carried out the request. {advice}"
    return ClouddbError("unknown_outcome", message, error.details)


def overdue(
    request: ResourceRequest, seen: Observation, known: Resource | None, timeout: float, result: Result
) -> WaitFailed:
    """The error for a resource that has not become what the task asks for."""
    resource = seen.resource or known
    name = label_of(resource) if resource else "the resource"
    problem = {
        ABSENT: f"{request.line} was accepted, but the list does not show {name}",
        DELETING: f"{name} is still being deleted",
        UNFINISHED: f"{name} is not ready",
    }.get(seen.state, f"{request.line} was accepted, but the list still shows {name}")
    advice = f"after {round(timeout, 1):g} s. Run the task again later, or increase timeout."
    return WaitFailed("wait_failed", f"{problem} {advice}", {}, {**result, "failed_ids": [], "pending_ids": []})
