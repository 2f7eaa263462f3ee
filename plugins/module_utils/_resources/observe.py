# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a resource: whether it is there, its fields, and what is happening to it. Keeps P1 and P3."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from .._errors import NotFound, StatusError
from .._http.client import Client
from .._operations.api import PAGE_SIZE, Operation, operation_pages, time_of_creation
from .._operations.status import SUCCEEDED
from .._timestamps import BEGINNING
from .compare import differing, fields_of
from .lookup import fetch_resource, find_resource
from .plan import Plan, Resource, project_of
from .state import ABSENT, DIFFERENT, GOING, LOOKBACK, PRESENT, is_about, is_own, judge, own_state

# An operation may be recorded before the resource that it creates.
BEFORE_CREATION = timedelta(minutes=1)
# How many operations are read to learn whether a creation has failed longer than LOOKBACK ago.
MAX_OPERATIONS = 1000


class Observation(NamedTuple):
    """The state of a resource (see state.py), the resource, and the operations that explain the state."""

    state: str
    resource: Resource | None
    operations: list[Operation] = []


def observe(client: Client, plan: Plan, known: Resource | None = None) -> Observation:
    """The state by the resource itself. C(known) is what an earlier observation, or the response, has shown of it.

    Raises what Client raises, AmbiguousMatch and IncompleteList.
    """
    resource = None
    if known is not None and (plan.find is None or plan.changes):
        resource = _by_own_path(client, plan, known)
    if plan.find and resource is None:
        resource = find_resource(client, plan, plan.find, known)
        if resource and plan.changes and not fields_of(plan.body, resource).keys() <= resource.keys():
            resource = _by_own_path(client, plan, resource) or resource
    if plan.find is None and resource is None and plan.method != "DELETE":
        resource = known
    state = own_state(resource) if resource else ABSENT
    if resource is None or state == ABSENT:
        return Observation(ABSENT, None)
    if plan.changes and state != GOING and differing(resource, plan.body):
        state = DIFFERENT
    return Observation(state, resource)


def _by_own_path(client: Client, plan: Plan, known: Resource) -> Resource | None:
    """The resource with all its fields; None if its path is unknown, has no GET, or one that shows something else."""
    if plan.method == "POST" and known.get("id") is None:
        return None
    try:
        shown = fetch_resource(client, plan, known)
    except StatusError as error:
        if error.transient:
            raise
        return None
    return shown if shown and shown.get("id") == known.get("id", shown.get("id")) else None


def with_operations(
    client: Client, plan: Plan, seen: Observation, known: Resource | None = None, since: datetime | None = None
) -> Observation:
    """The observation with the operations about the resource, or about C(known), which is gone; the state follows from them.

    C(since) is when the request was sent, by the service's clock; None: it was not. Raises what Client raises.
    """
    resource = seen.resource or known
    project_id = project_id_of(plan, resource)
    if resource is None or project_id is None or seen.state == DIFFERENT:
        return seen
    about: list[Operation] = []
    with suppress(NotFound):  # of a project that was deleted
        about = _operations_about(client, resource, project_id)
    state, operations = judge(resource, about, client.service_now(), since)
    if seen.state == ABSENT and all(operation["status"] in SUCCEEDED for operation in operations):
        state = ABSENT
    return Observation(state, seen.resource, operations)


def _operations_about(client: Client, resource: Resource, project_id: str) -> list[Operation]:
    """The operations about the resource, newest first, back to its creation if that is not too many to read."""
    about: list[Operation] = []
    scanned = 0
    oldest = max(time_of_creation(resource), BEGINNING + BEFORE_CREATION) - BEFORE_CREATION
    for page in operation_pages(client, project_id, PAGE_SIZE):
        now = client.service_now()
        for operation in page.items:
            created_at = time_of_creation(operation, now)
            if created_at < oldest:
                return about
            if is_about(operation, resource, project_id):
                about.append(operation)
                if is_own("create", operation, resource):
                    return about
            scanned += 1
            has_worked = own_state(resource) == PRESENT and any(each["status"] in SUCCEEDED for each in about)
            if now - created_at > LOOKBACK and (has_worked or scanned >= MAX_OPERATIONS):
                return about
    return about


def project_id_of(plan: Plan, resource: Resource | None) -> str | None:
    """The project whose operations are about the resource; None if it has none."""
    named = project_of(plan.segments)
    if named or resource is None:
        return named
    project_id = resource.get("project_id") or (resource.get("id") if plan.segments[0] == "projects" else None)
    return project_of(("projects", str(project_id)))
