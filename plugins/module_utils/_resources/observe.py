# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a resource: fetches it and the operations about it, which show its state. Keeps P1 and P3."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from .._http.client import Client
from .._http.errors import NotFound
from .._operations.operations import PAGE_SIZE, Operation, operation_pages, time_of_creation
from .._operations.status import SUCCEEDED
from .goal import CHANGE, Goal, Resource, project_in_path
from .journal import Journal
from .lookup import look_up
from .state import ABSENT, DIFFERENT, LOOKBACK, PRESENT, UNFINISHED, is_about, judge, own_state, performs

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


def observe(client: Client, goal: Goal, past: Journal) -> Observation:
    """The resource and its state. Raises what Client raises, and ClouddbError."""
    resource, warnings = look_up(client, goal, past)
    state = ABSENT if resource is None else own_state(resource)
    if state == ABSENT:
        resource = None
    # An action needs a resource that is ready, and may have been begun by somebody else.
    is_comparable = state == PRESENT or (state == UNFINISHED and not goal.first.action)
    is_decided = CHANGE in (goal.intent, past.sent) and (past.sent or not goal.first.action)
    if goal.find and is_decided and is_comparable and goal.differs(resource):
        return Observation(DIFFERENT, resource)
    # The operations about a resource may go on when it is gone.
    subject = resource or past.subject
    project_id = _project_of(goal, subject)
    if past.has_waited or not (subject and project_id):
        return Observation(state, resource or None, [], warnings)
    about: list[Operation] = []
    with suppress(NotFound):  # of a project that was deleted
        about = _operations_about(client, subject, project_id)
    judged, operations = judge(subject, about, client.service_now(), past.sent_at)
    if resource is None and all(operation["status"] in SUCCEEDED for operation in operations):
        judged = ABSENT
    return Observation(judged, resource, operations, warnings)


def _operations_about(client: Client, resource: Resource, project_id: str) -> list[Operation]:
    """The operations about the resource, newest first, back to its creation if that is not too many to read."""
    about: list[Operation] = []
    scanned = 0
    oldest = time_of_creation(resource) - BEFORE_CREATION
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


def _project_of(goal: Goal, resource: Resource | None) -> str | None:
    """The project whose operations are about the resource; None if it has none."""
    segments = goal.first.segments
    named = project_in_path(segments)
    if named or resource is None:
        return named
    project_id = resource.get("project_id") or (resource.get("id") if segments[0] == "projects" else None)
    return project_in_path(("projects", str(project_id))) if project_id else None
