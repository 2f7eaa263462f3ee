# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a resource, by its own fields and by the operations about it. Keeps P3."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from .._operations.api import Operation, time_of_creation
from .._operations.status import FAILED, SUCCEEDED

ABSENT, PRESENT, DIFFERENT = "absent", "present", "different"
COMING, GOING, BROKEN, UNSEEN = "on its way", "going", "broken", "not observed"

STATE_FIELDS = ("current_state", "state", "status")
# Some services list what they have deleted.
_GONE = re.compile(r"deleted|destroyed|removed|terminated", re.IGNORECASE)
_GOING = re.compile(r"delet|destroy|remov|terminat", re.IGNORECASE)
_COMING = re.compile(r"(?!running)(\w+ing|init|pending)", re.IGNORECASE)
# The platform's own check, which no request starts, so that no task waits for it.
CHECK = "check_availability"
# They create and delete the project, and name its default branch too.
PROJECT_ACTIONS = frozenset({"create_timeline", "delete_tenant"})
# Unfinished operations that are older are not waited for.
LOOKBACK = timedelta(days=1)


def own_state(resource: Mapping[str, Any]) -> str:
    """PRESENT, unless a field of the resource says that it is ABSENT, or COMING or GOING by itself."""
    texts = [text for text in map(resource.get, STATE_FIELDS) if isinstance(text, str)]
    if any(map(_GONE.fullmatch, texts)):
        return ABSENT
    if any(map(_GOING.match, texts)):
        return GOING
    return COMING if any(map(_COMING.fullmatch, texts)) else PRESENT


def is_about(operation: Operation, resource: Mapping[str, Any], project_id: str) -> bool:
    """Whether the operation acts on the resource, or on the branch that the resource is a part of."""
    ids = {resource.get("id"), resource.get("branch_id")} - {None}
    return project_id in ids or not ids.isdisjoint((operation.get("branch_id"), operation.get("endpoint_id")))


def is_own(kind: str, operation: Operation, resource: Mapping[str, Any]) -> bool:
    """Whether the operation creates or deletes (C(kind)) the resource itself, and not only a part of it."""
    action = str(operation.get("action"))
    fields = ["endpoint_id"] if re.search("compute|endpoint", action) else ["branch_id", "endpoint_id"]
    if action in PROJECT_ACTIONS or not any(map(operation.get, fields)):
        fields.append("project_id")
    return action.startswith(f"{kind}_") and resource.get("id") in map(operation.get, fields)


def judge(
    resource: Mapping[str, Any], about: Sequence[Operation], now: datetime, since: datetime | None = None
) -> tuple[str, list[Operation]]:
    """The state of a resource by its own fields and the operations about it, newest first; and those that explain it.

    C(now) and C(since), when the task's request was sent, are by the service's clock. A creation that failed leaves a broken
    resource, unless a later operation about it has succeeded.
    """
    state = own_state(resource)
    requested = [operation for operation in about if operation.get("action") != CHECK]
    started = [operation for operation in requested if since and _is_since(operation, since)]
    unfinished = [
        operation
        for operation in requested
        if operation["status"] not in SUCCEEDED | FAILED and now - time_of_creation(operation, now) <= LOOKBACK
    ]
    deletions = [operation for operation in about if is_own("delete", operation, resource)]
    if state == GOING or any(operation["status"] not in FAILED for operation in deletions):
        return GOING, [each for each in about if each in started or (each in deletions and each in unfinished)]
    for operation in about:
        if operation["status"] in FAILED and is_own("create", operation, resource):
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
