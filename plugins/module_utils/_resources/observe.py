# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a resource: its fields, and its state by these and by the operations about it. Keeps P1 and P3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, NamedTuple

from .._http.client import Client
from .._http.errors import NotFound, StatusError
from .._operations.api import PAGE_SIZE, Operation, operation_pages, time_of_creation
from .._operations.status import ENDED, FAILED, SUCCEEDED
from .._timestamps import BEGINNING
from .compare import differing, fields_of
from .lookup import ABSENT, COMING, GOING, PRESENT, find_resource, own_state
from .plan import Plan, Resource, fill, project_in_path

# A resource whose creation has failed, and one whose fields are not those of the request.
BROKEN, DIFFERENT = "broken", "different"
# The platform's own check, which no request starts, so that no task waits for it.
CHECK = "check_availability"
# They create and delete the project, and name its default branch too.
PROJECT_ACTIONS = frozenset({"create_timeline", "delete_tenant"})
# Unfinished operations that are older are not waited for.
LOOKBACK = timedelta(days=1)
# An operation may be recorded before the resource that it creates.
BEFORE_CREATION = timedelta(minutes=1)
# How many operations are read to learn whether a creation has failed longer than LOOKBACK ago.
MAX_OPERATIONS = 1000


class Observation(NamedTuple):
    """The state of a resource, the resource, the operations that explain the state, and warnings about the lookup."""

    state: str
    resource: Resource | None
    operations: list[Operation] = []
    warnings: list[str] = []


def observe(
    client: Client,
    plan: Plan,
    known: Resource | None = None,
    sent_at: datetime | None = None,
    has_waited: bool = False,
) -> Observation:
    """The resource and its state. C(known) is what the response, or an earlier observation, has shown of it.

    C(known) and C(sent_at), the time of the request by the service's clock, are None before the request. C(has_waited): whether
    the operations of the resource have been waited for. Raises what Client raises, and ResourceError.
    """
    resource, warnings = _look_up(client, plan, known, has_waited)
    state = ABSENT if resource is None else own_state(resource)
    if state == ABSENT:
        resource = None
    elif plan.find and plan.is_update and state != GOING and differing(resource or {}, plan.body):
        return Observation(DIFFERENT, resource)
    # The operations about a resource may go on when it is gone.
    subject = resource or known
    project_id = _project_of(plan, subject)
    if has_waited or not (subject and project_id):
        return Observation(state, resource or None, [], warnings)
    about: list[Operation] = []
    with suppress(NotFound):  # of a project that was deleted
        about = _operations_about(client, subject, project_id)
    judged, operations = judge(subject, about, client.service_now(), sent_at)
    if resource is None and all(operation["status"] in SUCCEEDED for operation in operations):
        judged = ABSENT
    return Observation(judged, resource, operations, warnings)


def _look_up(client: Client, plan: Plan, known: Resource | None, has_waited: bool) -> tuple[Resource | None, list[str]]:
    """The resource, in its list or by its own path, and warnings."""
    is_deletion = plan.method == "DELETE"
    if plan.find is None:
        if not is_deletion and not has_waited and own_state(known or {}) == PRESENT:
            return known, []  # as the response has shown it a moment ago
        resource = _by_own_path(client, plan, known or {})
        # Only a GET of its path shows that a resource is gone.
        return resource if resource or is_deletion else known, []
    resource = _by_own_path(client, plan, known) if plan.is_update and known is not None else None
    if resource:
        return resource, []
    resource, warnings = find_resource(client, plan, plan.find, known)
    if resource and plan.is_update and not fields_of(plan.body, resource).keys() <= resource.keys():
        resource = _by_own_path(client, plan, resource) or resource
    return resource, warnings


def _by_own_path(client: Client, plan: Plan, known: Resource) -> Resource | None:
    """The resource with all its fields; None if its path is unknown, has no GET, or one that shows something else."""
    if plan.method == "POST" and known.get("id") is None:
        return None
    segments = fill(plan.segments, known)
    if plan.method == "POST":
        # The path of an action, such as branches/ID/restore, has the id of its resource.
        known_id = str(known["id"])
        segments = (*takewhile(lambda segment: segment != known_id, segments), known_id)
    try:
        shown = shown_resource(client.request("GET", segments).json, plan)
    except StatusError as error:
        if error.transient:
            raise
        return None
    return shown if shown and shown.get("id") == known.get("id", shown.get("id")) else None


def shown_resource(json: Any, plan: Plan) -> Resource | None:
    """The resource that a response shows: C(branch) for a path with C(branches), or the response itself if it has an id."""
    if not isinstance(json, dict):
        return None
    for segment in reversed(plan.segments):
        for name, value in json.items():
            if isinstance(value, dict) and segment.startswith(name):
                return value
    return json if "id" in json else None


def _operations_about(client: Client, resource: Resource, project_id: str) -> list[Operation]:
    """The operations about the resource, newest first, back to its creation if that is not too many to read."""
    about: list[Operation] = []
    scanned = 0
    oldest = max(time_of_creation(resource), BEGINNING + BEFORE_CREATION) - BEFORE_CREATION
    for page in operation_pages(client, project_id, PAGE_SIZE):
        now = client.service_now()
        for operation in page.items:
            if time_of_creation(operation, now) < oldest:
                return about
            if is_about(operation, resource, project_id):
                about.append(operation)
                if performs(operation, "create", resource):
                    return about
        scanned += len(page.items)
        has_worked = own_state(resource) == PRESENT and any(each["status"] in SUCCEEDED for each in about)
        is_old = page.items and now - time_of_creation(page.items[-1], now) > LOOKBACK
        if is_old and (has_worked or scanned >= MAX_OPERATIONS):
            return about
    return about


def _project_of(plan: Plan, resource: Resource | None) -> str | None:
    """The project whose operations are about the resource; None if it has none."""
    named = project_in_path(plan.segments)
    if named or resource is None:
        return named
    project_id = resource.get("project_id") or (resource.get("id") if plan.segments[0] == "projects" else None)
    return project_in_path(("projects", str(project_id))) if project_id else None


def is_about(operation: Operation, resource: Mapping[str, Any], project_id: str) -> bool:
    """Whether the operation acts on the resource, or on the branch that the resource is a part of."""
    ids = {resource.get("id"), resource.get("branch_id")} - {None}
    return project_id in ids or not ids.isdisjoint((operation.get("branch_id"), operation.get("endpoint_id")))


def performs(operation: Operation, verb: str, resource: Mapping[str, Any]) -> bool:
    """Whether the operation creates or deletes (C(verb)) the resource itself, and not only a part of it."""
    action = str(operation.get("action"))
    fields = ["project_id"] if action in PROJECT_ACTIONS else ["endpoint_id", "branch_id", "project_id"]
    acted_on = next(filter(None, map(operation.get, fields)), None)
    return action.startswith(f"{verb}_") and acted_on == resource.get("id")


def judge(
    resource: Mapping[str, Any], about: Sequence[Operation], now: datetime, sent_at: datetime | None = None
) -> tuple[str, list[Operation]]:
    """The state of a resource by its own fields and the operations about it, newest first; and those that explain it.

    C(now) and C(sent_at), when the task's request was sent, are by the service's clock. A creation that failed leaves a broken
    resource, unless a later operation about it has succeeded.
    """
    state = own_state(resource)
    requested = [operation for operation in about if operation.get("action") != CHECK]
    started = [operation for operation in requested if sent_at and _is_since(operation, sent_at)]
    unfinished = [
        operation
        for operation in requested
        if operation["status"] not in ENDED and now - time_of_creation(operation, now) <= LOOKBACK
    ]
    deletions = [operation for operation in about if performs(operation, "delete", resource)]
    if state == GOING or any(operation["status"] not in FAILED for operation in deletions):
        return GOING, [each for each in about if each in started or (each in deletions and each in unfinished)]
    for operation in about:
        if operation["status"] in FAILED and performs(operation, "create", resource):
            # Those that were started together with the creation may succeed without it.
            failed_at = time_of_creation({"created_at": operation.get("updated_at")}, time_of_creation(operation))
            later = (each for each in about if time_of_creation(each) > failed_at)
            if state == COMING or not any(each["status"] in SUCCEEDED for each in later):
                return BROKEN, [operation]
    awaited = [operation for operation in about if operation in started or operation in unfinished]
    is_unsettled = any(operation["status"] not in SUCCEEDED for operation in awaited)
    return COMING if is_unsettled else state, awaited


def _is_since(operation: Operation, since: datetime) -> bool:
    created_at = time_of_creation(operation)
    # The service's timestamps may be in whole seconds.
    return created_at >= (since if created_at.microsecond else since.replace(microsecond=0))
