# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a resource, by its own fields and by the operations about it, and its comparison with what a task asks for.

Keeps P2 and P3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ansible.module_utils.common.dict_transformations import recursive_diff

from .._lists import similar
from .._operations.operations import LOOKBACK, Operation, time_of_creation
from .._operations.status import ENDED, FAILED, SUCCEEDED
from .._timestamps import parse_timestamp
from .._untrusted import displayable

Resource = dict[str, Any]

# What its own fields show.
ABSENT, PRESENT, UNFINISHED, DELETING = "absent", "present", "unfinished", "deleting"
# Its creation has failed; its fields are not those of the request; an error that may pass has prevented the observation.
BROKEN, DIFFERENT, UNSEEN = "broken", "different", "not observed"
# Nothing selects it, or only what an earlier task would create.
UNSELECTED = "not selected"
STATE_FIELDS = ("current_state", "state", "status")
# Some services list what they have deleted. Destroyed, removed and terminated are not words of this service, but of others, in
# the public reports that the tests name.
_DELETED = re.compile(r"deleted|destroyed|removed|terminated", re.IGNORECASE)
_DELETING = re.compile(r"delet|destroy|remov|terminat", re.IGNORECASE)
_UNFINISHED = re.compile(r"(?!running)(\w+ing|init|pending)", re.IGNORECASE)
# The platform's own check, which no request starts, so that no task waits for it.
CHECK = "check_availability"
# They create and delete the project, and name its default branch too.
PROJECT_ACTIONS = frozenset({"create_timeline", "delete_tenant"})
# Operations of one request are not created at the same moment.
SAME_REQUEST = timedelta(seconds=10)
# For so long after a deletion, lists may still show what is gone. What is shown later was recovered.
LAG = timedelta(minutes=1)
# As in JSON. Python also takes 1_000, 017 and nan for numbers.
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,99})(\.\d{1,99})?([eE][+-]?\d{1,3})?", re.ASCII)


class Observation(NamedTuple):
    """The state of a resource, the resource, the operations that explain the state, and warnings about the lookup."""

    state: str
    resource: Resource | None
    operations: list[Operation] = []
    warnings: list[str] = []


def own_state(resource: Mapping[str, Any]) -> str:
    """PRESENT, unless a field of the resource says that it is ABSENT, UNFINISHED or DELETING."""
    texts = [text for text in map(resource.get, STATE_FIELDS) if isinstance(text, str)]
    if any(map(_DELETED.fullmatch, texts)):
        return ABSENT
    if any(map(_DELETING.match, texts)):
        return DELETING
    return UNFINISHED if any(map(_UNFINISHED.fullmatch, texts)) else PRESENT


def is_about(operation: Operation, resource: Mapping[str, Any], project_id: str) -> bool:
    """Whether the operation acts on the resource, or on the branch that the resource is a part of."""
    ids = {resource.get("id"), resource.get("branch_id")} - {None}
    acted_on = [operation.get(field) for field in ("branch_id", "endpoint_id")]
    return project_id in ids or any(isinstance(each, str) and each in ids for each in acted_on)


def acts_on_whole(operation: Operation, verb: str, resource: Mapping[str, Any]) -> bool:
    """Whether the operation creates or deletes (C(verb)) the resource itself, and not only a part of it."""
    action = str(operation.get("action"))
    fields = ["project_id"] if action in PROJECT_ACTIONS else ["endpoint_id", "branch_id", "project_id"]
    acted_on = next(filter(None, map(operation.get, fields)), None)
    return action.startswith(f"{verb}_") and acted_on == resource.get("id")


def is_of_restore(deletion: Operation, resource: Mapping[str, Any], created: Sequence[datetime]) -> bool:
    """Whether the operation deletes what a branch was before a restore, which starts a creation with it."""
    time = time_of_creation(deletion)
    return bool(resource.get("last_reset_at")) and any(abs(time - each) <= SAME_REQUEST for each in created)


def is_failed_creation(operation: Operation, resource: Mapping[str, Any]) -> bool:
    """Whether the operation should have created the resource, and has failed."""
    return operation["status"] in FAILED and acts_on_whole(operation, "create", resource)


def state_and_reasons(
    resource: Mapping[str, Any], about: Sequence[Operation], now: datetime, sent_at: datetime | None = None
) -> tuple[str, list[Operation]]:
    """The state of a resource by its own fields and the operations about it, newest first; and those that explain it.

    C(now) and C(sent_at), when the task's request was sent, are by the service's clock. A creation that failed leaves a broken
    resource, unless a later operation about it has succeeded.
    """
    state = own_state(resource)
    requested = [operation for operation in about if operation.get("action") != CHECK]
    started = [operation for operation in requested if sent_at and is_since(time_of_creation(operation), sent_at)]
    unfinished = [
        operation
        for operation in requested
        if operation["status"] not in ENDED and now - time_of_creation(operation, now) <= LOOKBACK
    ]
    created = [time_of_creation(each) for each in about if acts_on_whole(each, "create", resource)]
    deletions = [
        each
        for each in about
        if acts_on_whole(each, "delete", resource)
        and not is_of_restore(each, resource, created)
        and not (each["status"] in SUCCEEDED and now - _time_of_end(each) > LAG)
    ]
    if state == DELETING or any(operation["status"] not in FAILED for operation in deletions):
        return DELETING, [each for each in about if each in started or (each in deletions and each in unfinished)]
    for operation in about:
        if is_failed_creation(operation, resource):
            # Those that were started together with the creation may succeed without it.
            failed_at = _time_of_end(operation)
            later = (each for each in about if time_of_creation(each) > failed_at)
            if state == UNFINISHED or not any(each["status"] in SUCCEEDED for each in later):
                return BROKEN, [operation]
    awaited = [operation for operation in about if operation in started or operation in unfinished]
    is_unsettled = any(operation["status"] not in SUCCEEDED for operation in awaited)
    return UNFINISHED if is_unsettled else state, awaited


def _time_of_end(operation: Operation) -> datetime:
    return time_of_creation({"created_at": operation.get("updated_at")}, time_of_creation(operation))


def is_since(time: datetime, since: datetime) -> bool:
    """Whether the time is not before C(since). The service's timestamps may be in whole seconds."""
    return time >= (since if time.microsecond else since.replace(microsecond=0))


def label_of(resource: Mapping[str, Any]) -> str:
    """What identifies the resource in messages: its id, else its name."""
    return displayable(resource.get("id", resource.get("name", "?")), 100)


# Comparison


def contains(actual: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there: nested, lists in order and in full; other fields do not matter.

    A field that is missing is null. Numbers are compared by value, and timestamps as times. Templates turn numbers and
    booleans into text, so the text C("17") is wanted where 17 is, and C("True") where true is. Text that is there is text: an
    integer is wanted by its digits, but 1.1 may have been written as 1.10.
    """
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(
            contains(actual.get(field), value) for field, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(actual, list) and len(actual) == len(wanted) and all(map(contains, actual, wanted))
    if actual is None or wanted is None or isinstance(actual, (Mapping, list)):
        return actual is wanted
    if isinstance(actual, str) and isinstance(wanted, str):
        return actual == wanted or _is_same_time(actual, wanted)
    if isinstance(actual, str) and isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        return isinstance(wanted, int) and actual == str(wanted)
    return bool(_comparable(actual) == _comparable(wanted))


def differences(actual: Any, wanted: Any, path: str) -> Iterator[tuple[str, str]]:
    """The paths of the fields that are not as wanted, such as C(settings.quota), each with a hint at those beside a missing one."""
    if not (isinstance(actual, Mapping) and isinstance(wanted, Mapping)):
        yield path, ""
        return
    for field, value in wanted.items():
        if field in actual and not contains(actual[field], value):
            yield from differences(actual[field], value, f"{path}.{field}")
        elif field not in actual and value is not None:
            near = similar(field, actual)[:1]
            known = f"{path} has: {', '.join(sorted(actual))}." if actual else ""
            yield f"{path}.{field}", f"Did you mean {path}.{near[0]}?" if near else known


def _is_same_time(actual: str, wanted: str) -> bool:
    try:
        # A date without a time of day may be a name.
        return ":" in actual and ":" in wanted and parse_timestamp(actual) == parse_timestamp(wanted)
    except ValueError:
        return False


def _comparable(value: Any) -> Any:
    if isinstance(value, bool) or value in ("True", "False"):
        return str(value).lower()
    return json.loads(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The diff of a task: C(before) and C(after) with only the fields that changed, at any depth."""
    old, new = recursive_diff(before, after) or ({}, {})
    return {"before": old, "after": new}
