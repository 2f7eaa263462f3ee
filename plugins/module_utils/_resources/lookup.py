# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes resources: finds them, in their lists and by their own paths, and the operations about them. Keeps P1, P3, P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import takewhile
from typing import Any

from .._errors import ClouddbError, InvalidOption
from .._http.client import Client
from .._http.errors import NotFound, StatusError
from .._http.response import Response
from .._lists import Listed, list_resources, search_named
from .._operations.operations import (
    LOOKBACK,
    MAX_NAMED,
    Operation,
    operation_pages,
    project_in_path,
    time_of_creation,
)
from .._operations.status import SUCCEEDED
from .._projects import PROJECTS, require_organization
from .._untrusted import displayable
from .goal import CHANGE, DELETE, Goal, Resource, ResourceRequest, fill, placeholders
from .state import (
    ABSENT,
    DELETING,
    DIFFERENT,
    PRESENT,
    Observation,
    acts_on_whole,
    contains,
    is_about,
    label_of,
    own_state,
    state_and_reasons,
)
from .task import Task

# An account may list projects for an organization only, and a key may be for one project only.
LIST_REFUSED = frozenset({400, 403})
# An operation may be recorded before the resource that it creates.
BEFORE_CREATION = timedelta(minutes=1)
# How many operations are read to learn whether a creation has failed longer than LOOKBACK ago.
MAX_OPERATIONS = 1000


class Ambiguous(ClouddbError):
    """Several resources match what a task selects."""

    def __init__(self, message: str, resources: Sequence[Resource]) -> None:
        super().__init__("ambiguous_match", message)
        self.resources = resources


def observe(task: Task) -> Observation:
    """The resource and its state. Raises what Client raises, and ClouddbError."""
    client, goal = task.waiting.bounded_client(), task.goal
    resource, warnings = _look_up(client, task)
    resource = with_part(client, goal.first_request, resource)
    state = ABSENT if resource is None else own_state(resource)
    if state == ABSENT:
        resource = None
    # An action may have been begun by somebody else, as the operations show.
    is_decided = CHANGE in (goal.intent, task.sent) and (task.sent or not goal.first_request.action)
    if goal.find and is_decided and state == PRESENT and goal.differs(resource):
        return Observation(DIFFERENT, resource)
    # The operations about a resource may go on when it is gone.
    subject = resource or task.subject
    project_id = _project_of(goal, subject)
    if task.has_waited or _has_no_operations(goal) or not (subject and project_id):
        return Observation(state, resource or None, [], warnings)
    about: list[Operation] = []
    with suppress(NotFound):  # of a project that was deleted
        about = _operations_about(client, subject, project_id)
    judged, operations = state_and_reasons(subject, about, client.service_now(), task.sent_at)
    if resource is None and all(operation["status"] in SUCCEEDED for operation in operations):
        judged = ABSENT
    return Observation(judged, resource, operations, warnings)


def _look_up(client: Client, task: Task) -> tuple[Resource | None, list[str]]:
    """The resource, in its list or by its own path, and warnings. Raises what find_resource() raises."""
    goal, request, known = task.goal, task.request, task.subject
    is_deletion, is_creation = goal.intent == DELETE, goal.creates and task.sent != CHANGE
    if goal.find is None:
        if not is_deletion and not task.has_waited and own_state(known or {}) == PRESENT:
            return known, []  # as the response has shown it a moment ago
        # Only a GET of its path shows that a resource is gone.
        return _by_own_path(client, goal, request, known or {}) or (None if is_deletion else known), []
    # Its own path does not lag, and has what the list leaves out, such as a shared project.
    named = goal.find.match if known is None else known
    if task.error and known and (successor := _successor(client, task, known)):
        return successor, []
    own = None if is_creation else _by_own_path(client, goal, request, named)
    if own and (known or contains(own, goal.find.match)):
        return own, []
    if own is not None and task.sent == DELETE and goal.kind:
        return None, []  # the published API document has the path of each kind
    try:
        # The service refuses a second one of this name, so that its search is enough before the creation.
        or_all = bool(task.sent or not (is_creation and goal.kind and goal.kind.is_unique))
        resource, warnings = find_resource(client, goal, known, is_creation, or_all)
    except StatusError as error:
        if own is None or error.status not in LIST_REFUSED:
            raise
        return None, []
    change = goal.requests.get(CHANGE)
    if resource and change and not change.fields(resource).keys() <= resource.keys():
        resource = _by_own_path(client, goal, change, resource) or resource
    return resource, warnings


def _has_no_operations(goal: Goal) -> bool:
    """Whether none is about the resource: a recovery starts none, and those of snapshots are about their branches."""
    action = goal.first_request.action
    return bool((action and action.listed_with) or (goal.kind and goal.kind.creation))


def _successor(client: Client, task: Task, known: Resource) -> Resource | None:
    """The newest resource that shows that it has taken the place of this one; None if there is none, or none can."""
    find, successor = task.goal.find, task.request.action.successor if task.request.action else {}
    if not successor or find is None:
        return None
    match = {field: known.get(name) for field, name in successor.items()}
    found = [
        each for each in list_resources(client, find.segments, find.field, find.query).items if contains(each, match)
    ]
    return max(found, key=time_of_creation, default=None)


def with_part(client: Client, request: ResourceRequest, resource: Resource | None) -> Resource | None:
    """The resource with the fields of the part that the request is about, which GET of its path shows."""
    if request.method != "PUT" or not request.action or not resource or not resource.get("id"):
        return resource
    return {**resource, **client.request("GET", fill(request.segments, resource)).object()}


def _by_own_path(client: Client, goal: Goal, request: ResourceRequest, known: Mapping[str, Any]) -> Resource | None:
    """The resource with all its fields, none if it is gone; None if its path is unknown, has no GET, or shows something else."""
    is_action = request.method == "POST" or request.action
    if goal.kind and goal.kind.creation:
        return None
    if not placeholders(request.segments) <= known.keys() or (is_action and known.get("id") is None):
        return None
    segments = fill(request.segments, known)
    if goal.find and goal.kind and is_action:
        segments = (*goal.find.segments, str(known["id"]))
    elif is_action:
        # The path of an action, such as branches/ID/restore, has the id of its resource.
        known_id = str(known["id"])
        segments = (*takewhile(lambda segment: segment != known_id, segments), known_id)
    try:
        shown = request.resource_in(client.request("GET", segments).json)
    except StatusError as error:
        if error.transient:
            raise
        return {} if isinstance(error, NotFound) else None
    return shown if shown and shown.get("id") == known.get("id", shown.get("id")) else None


def find_resource(
    client: Client, goal: Goal, known: Resource | None = None, is_creation: bool = False, or_all: bool = True
) -> tuple[Resource | None, list[str]]:
    """The resource of the goal: by its id once that is C(known), until then the one that C(find) of the goal selects, if it has one.

    It is also found by the values that a change gives it, because an earlier run may have made it. C(or_all) is that of
    search_named(). Raises what Client and select() raise.
    """
    find, known_id = goal.find, (known or {}).get("id")
    if find is None:
        return None, []
    alternatives = [find.match]
    if known_id is not None:
        by_id = {"id": known_id}
        # The response to a creation may have been that of a gateway.
        alternatives = [by_id, find.match] if is_creation else [by_id]
    elif goal.intent == CHANGE:
        fields = goal.requests[CHANGE].fields({})
        alternatives.append({field: fields.get(field, value) for field, value in find.match.items()})
    text = find.match.get("name") if known_id is None else known_id
    is_named = isinstance(text, (str, int)) and not isinstance(text, bool)
    action = goal.first_request.action
    if is_named and action and action.listed_with:
        # Several of the same name may have been deleted.
        alternatives.append({"id": text})
    check = None if goal.kind else partial(require_array, field=find.field)
    try:
        listed = (
            search_named(client, find.segments, find.field, str(text), find.query, check=check, or_all=or_all)
            if is_named
            else list_resources(client, find.segments, find.field, find.query, check=check)
        )
    except NotFound:
        if find.segments == PROJECTS:
            require_organization(client, find.query)
        raise
    if find.segments == PROJECTS and not listed.names:
        require_organization(client, find.query)
    found = select(listed, alternatives, goal)
    if found[0] or not action or not action.listed_with:
        return found
    query = {**find.query, **action.listed_with}
    return select(list_resources(client, find.segments, find.field, query, check=check), alternatives, goal)


def require_array(response: Response, field: str | None) -> None:
    """Raise InvalidOption for a list whose array has another name than C(find.list)."""
    json = response.json
    if isinstance(json, list) and field is not None:
        raise InvalidOption("find.list", "the response is the array itself. Omit list")
    if not isinstance(json, dict) or isinstance(json.get(field or ""), list):
        return
    arrays = ", ".join(displayable(name, 100) for name, value in json.items() if isinstance(value, list))
    if arrays or field in json:
        problem = "the response is not an array" if field is None else f"the list has no array '{field}'"
        raise InvalidOption("find.list", f"{problem}. It has: {arrays or 'none'}")


def select(listed: Listed, alternatives: Sequence[Mapping[str, Any]], goal: Goal) -> tuple[Resource | None, list[str]]:
    """The only resource that matches, and warnings about fields of C(find.match) that no resource has.

    Each of the C(alternatives) has the fields of a match; they are tried in turn until a resource matches. One that is being
    deleted counts only if there is no other. Raises ClouddbError if several match, or if none does and the list is incomplete.
    """
    items = [item for item in listed.items if own_state(item) != ABSENT]
    matching = ([item for item in items if contains(item, match)] for match in alternatives)
    found = next(filter(None, matching), [])
    found = [item for item in found if own_state(item) != DELETING] or found
    is_by_id = all("id" in match for match in alternatives)
    if listed.warnings and not (found and is_by_id):
        what = f"{len(found)} match" if found else "No resource matches"
        advice = " Select the resource by its id." if found else ""
        raise ClouddbError("incomplete_list", f"{what} {goal.selector}. {listed.warnings[0]}{advice}")
    if len(found) > 1:
        named = ", ".join(map(label_of, found[:MAX_NAMED]))
        more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        problem = f"{goal.selector}: {len(found)} resources match"
        if goal.kind is None:
            problem = f"{goal.first_request.line} is about one resource, but {len(found)} match {goal.selector}"
        raise Ambiguous(f"{problem}: {named}{more}. Select one by its id, or rename one.", found)
    if found:
        return found[0], []
    # The body of a creation has these fields as well, so that a misspelled one is an error after it.
    fields = goal.find.match if goal.find and listed.items and not goal.creates else {}
    unknown = [name for name in fields if not any(name in item for item in listed.items)]
    subject = "Nothing was deleted: no resource" if goal.intent == DELETE else "No resource"
    return None, [f"{subject} in the list has the field {name} of find.match. Check its name." for name in unknown]


def _operations_about(client: Client, resource: Resource, project_id: str) -> list[Operation]:
    """The operations about the resource, newest first, back to its creation if that is not too many to read."""
    about: list[Operation] = []
    scanned = 0
    oldest = time_of_creation(resource) - BEFORE_CREATION
    for page in operation_pages(client, project_id, page_size=None):
        now = client.service_now()
        for operation in page.items:
            if time_of_creation(operation, now) < oldest:
                return about
            if is_about(operation, resource, project_id):
                about.append(operation)
                if acts_on_whole(operation, "create", resource):
                    return about
        scanned += len(page.items)
        has_worked = own_state(resource) == PRESENT and any(each["status"] in SUCCEEDED for each in about)
        is_old = page.items and now - time_of_creation(page.items[-1], now) > LOOKBACK
        if is_old and (has_worked or scanned >= MAX_OPERATIONS):
            return about
    return about


def _project_of(goal: Goal, resource: Resource | None) -> str | None:
    """The project whose operations are about the resource; None if it has none."""
    segments = goal.first_request.segments
    named = project_in_path(segments)
    if named or resource is None:
        return named
    project_id = resource.get("project_id") or (resource.get("id") if segments[0] == "projects" else None)
    return project_in_path(("projects", str(project_id))) if project_id else None
