# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends the request of a task if it is needed. After a lost response, looks up the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from .._errors import LOCKED, ClouddbError, NotFound, RequestFailed, StatusError, UnexpectedResponse
from .._http.client import NO_CONTENT, SUCCESS, Client
from .._http.response import Response
from .._operations.api import Operation, Selection, list_operations
from .._operations.poll import unfinished_operations
from .._untrusted import displayable
from .compare import contains
from .fetch import fetch
from .lookup import check_unknown, find_again, find_object, is_fulfilled, look_up, no_match, object_in
from .outcome import Outcome
from .path import fill, project_of
from .plan import Object, Plan

CONFLICT = 409
# Operations that are older are not those of an earlier run of the task.
LOOKBACK = 86400.0
# The request may be carried out only after its connection broke.
LOOKUP_PAUSES = (0.0, 0.5, 1.0, 2.0)


class OtherObject(UnexpectedResponse):
    """The response shows an object that C(find) does not match, so that another lookup would not show it either."""


class UnknownOutcome(ClouddbError):
    """The service may have carried out the request, and nothing shows whether it has."""

    kind = "unknown_outcome"


def carry_out(client: Client, plan: Plan, acted_since: datetime | None = None) -> Outcome:
    """Send the request of C(plan) once, unless the object shows that nothing has to be sent.

    C(acted_since) is the service's time since which an earlier attempt of the task may have been carried out. Raises what
    Client raises (StatusError with 423 if the project is locked), AmbiguousMatch, NoMatch, and UnknownOutcome if the
    service may have carried out the request and nothing shows whether it has.
    """
    if plan.method == "GET":
        return fetch(client, plan)
    if acted_since:
        # An accepted error would hide what the earlier attempt has done.
        plan = plan._replace(accept=[status for status in plan.accept if status in SUCCESS])
    lookup = look_up(client, plan)
    found, warnings = lookup.found, check_unknown(plan, lookup)
    # After the lookup, whose response has the service's time in whole seconds, so that no operation is later than it seems.
    started = acted_since or client.service_now()
    if is_fulfilled(plan, found):
        if acted_since:
            return _after_lost_response(client, plan, found, None, started)
        return _unchanged(client, plan, found)._replace(warnings=warnings)
    if found is None and plan.find and plan.method in ("PATCH", "PUT"):
        raise no_match(plan)
    try:
        return _send(client, plan, found, started)
    except RequestFailed as error:
        if isinstance(error, StatusError):
            if error.status == LOCKED or error.status in SUCCESS:
                raise
            outcome = _outcome_of_refusal(client, plan, found, error, started, acted_since is not None)
            if outcome:
                return outcome
        if not error.may_have_acted:
            raise
        return _outcome_by_lookup(client, plan, found, error, started)


def _unchanged(client: Client, plan: Plan, found: Object | None) -> Outcome:
    return Outcome(False, object=found, before=found, operations=unfinished_about(client, plan, found))


def _outcome_of_refusal(
    client: Client, plan: Plan, found: Object | None, error: StatusError, started: datetime, acted_before: bool
) -> Outcome | None:
    """The outcome of a request whose object was created or deleted already, by another client or an earlier attempt."""
    if error.status == CONFLICT and plan.method == "POST":
        existing = find_object(client, plan)
        return _unchanged(client, plan, existing) if existing is not None else None
    # If the object is still there, the path is wrong.
    if isinstance(error, NotFound) and plan.method == "DELETE" and find_again(client, plan, found) is None:
        if error.may_have_acted or acted_before:
            return _after_lost_response(client, plan, None, found, started)
        return Outcome(False) if plan.find else None
    return None


def _send(client: Client, plan: Plan, found: Object | None, since: datetime) -> Outcome:
    segments = fill(plan.segments, found or {})
    response = client.request(
        plan.method, segments, plan.query, plan.body, accept=plan.accept, retry_locked=False, may_be_empty=True
    )
    started = started_operations(response)
    warnings: list[str] = []
    after = None
    if response.status not in SUCCESS:
        return Outcome(False, response.json, response.status, found, found, started)
    if plan.method != "DELETE":
        after = object_in(response, plan)
        if plan.find and not (after and _is_about(plan, found, after)):
            shown, after = after, find_again(client, plan, found)
            if after is None and shown and plan.method == "POST":
                raise _other_object(response, shown)
            if after is None:
                raise response.unexpected(f"{_missing_content(response)}, and no object matches find")
            # Nor can it be expected to show the operations.
            if not started:
                started, warnings = _unshown_operations(client, plan, after, since)
    elif response.attempts > 1 and not started:
        # An earlier attempt has deleted it, so that this response has no operations.
        return _after_lost_response(client, plan, None, found, since)
    elif not started and response.status != NO_CONTENT:
        if find_again(client, plan, found):
            raise response.unexpected(f"{_missing_content(response)}, and the object is still there")
        if not response.json:
            started, warnings = _unshown_operations(client, plan, found, since)
    return Outcome(True, response.json, response.status, after, found, started, warnings)


def _other_object(response: Response, shown: Object) -> OtherObject:
    name = displayable(shown.get("id", shown.get("name", "?")), 100)
    message = response.unexpected(f"it shows an object that find does not match: {name}")
    return OtherObject(str(message), response.method, response.path, response.attempts, response.request_id)


def _missing_content(response: Response) -> str:
    return "its body is empty" if response.json is None else "it does not show what was done"


def _is_about(plan: Plan, found: Object | None, shown: Object) -> bool:
    """Whether a response shows the object that the task is about. A gateway's response does not."""
    if found is None:
        return plan.find is not None and contains(shown, plan.find.match)
    return found.get("id") == shown.get("id")


def started_operations(response: Response) -> list[Operation]:
    """The operations that the request started (api.md, Operations returned by other requests). Raises UnexpectedResponse."""
    if not isinstance(response.json, dict) or response.json.get("operations") is None:
        return []
    return response.items("operations", id=str, project_id=str, status=str)


def _outcome_by_lookup(
    client: Client, plan: Plan, found: Object | None, error: RequestFailed, started: datetime
) -> Outcome:
    """The outcome of a request whose response is missing, by what is there now. Raises UnknownOutcome."""
    advice = "Check whether it was, before you run the task again."
    if plan.find:
        try:
            for pause in LOOKUP_PAUSES:
                if pause:
                    client.clock.sleep(pause)
                current = find_again(client, plan, found)
                if is_fulfilled(plan, current):
                    return _after_lost_response(client, plan, current, found, started)
            advice = "So far, it was not. It is safe to run the task again."
            if isinstance(error, OtherObject):
                advice = "Check it and find.match before you run the task again, which may create another object."
        except ClouddbError as lookup_error:
            advice = f"This could not be looked up: {lookup_error} It is safe to run the task again."
    elif plan.method == "POST":
        advice += " With find, the task looks this up by itself."
    raise UnknownOutcome(f"{error} The service may have carried out the request. {advice}", error.details) from error


def _after_lost_response(
    client: Client, plan: Plan, after: Object | None, before: Object | None, started: datetime
) -> Outcome:
    """The outcome of a request that was carried out although its response is missing; its operations are those since then."""
    operations = _operations_since(client, plan, after or before, started)
    evidence = ", as its list shows" if plan.find else ""
    warning = f"The response to {plan.name} was lost. The service has carried out the request{evidence}."
    return Outcome(True, None, None, after, before, operations, [warning])


def _operations_since(client: Client, plan: Plan, about: Object | None, started: datetime) -> list[Operation]:
    """The operations of the project since the request, for a response that does not show them."""
    project_id = _project_id(plan, about)
    if project_id:
        with suppress(NotFound):  # of a project that was deleted
            # Timestamps may be in whole seconds.
            return list_operations(client, project_id, Selection(created_after=started.replace(microsecond=0)))
    return []


def _unshown_operations(
    client: Client, plan: Plan, about: Object | None, since: datetime
) -> tuple[list[Operation], list[str]]:
    """The operations to wait for after a successful response that does not show them, and a warning if they cannot be listed."""
    if not plan.wait:
        return [], []
    try:
        return _operations_since(client, plan, about, since), []
    except ClouddbError as error:
        problem = f"{plan.name} was carried out, but the task did not wait for its operations, because they could not be listed"
        return [], [f"{problem}: {error}"]


def unfinished_about(client: Client, plan: Plan, found: Object | None) -> list[Operation]:
    """The unfinished operations on the object to wait for, which an earlier run of the task may have started."""
    project_id = _project_id(plan, found)
    if not (found and project_id and plan.wait):
        return []
    try:
        operations = unfinished_operations(client, project_id, LOOKBACK)
    except NotFound:
        return []
    ids = {found.get("id"), found.get("branch_id")} - {None}
    return [
        operation
        for operation in operations
        if project_id in ids or ids & {operation.get("branch_id"), operation.get("endpoint_id")}
    ]


def _project_id(plan: Plan, found: Mapping[str, Any] | None) -> str | None:
    named = project_of(plan.segments)
    if named or found is None:
        return named
    project_id = found.get("project_id") or (found.get("id") if plan.segments[0] == "projects" else None)
    return project_id if project_of(("projects", str(project_id))) else None
