# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletes the branches that a pattern names, which nobody needs any more. Keeps P3, P4 and P9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from .._errors import ClouddbError, Result
from .._http.client import Client
from .._lists import list_resources
from .._operations.operations import time_of_creation
from .._operations.wait import limits_from
from .._options import NOT_CREATED_ID, integer
from .._patterns import matcher, require_clear
from .._timestamps import duration
from .compare import changed_fields
from .declared import deletion, list_of, module_result
from .engine import reach
from .goal import Find, Resource
from .kinds import BRANCH
from .lookup import label_of
from .refusals import reason_to_keep
from .state import DELETING, own_state
from .waiting import Waiting

DEFAULT_AGE = "7d"


def sweep(params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """Delete the branches that C(name_pattern) matches, up to C(max_deletions). Returns the result of the module branch.

    Raises what the engine of api_request raises, with the branches that were deleted before, and ResourceNotFound.
    """
    require_clear("name_pattern", params["name_pattern"])
    limit = integer(params, "max_deletions", 1)
    limits = limits_from(params)
    older_than = DEFAULT_AGE if params["older_than"] is None else params["older_than"]
    age = timedelta(seconds=duration({"older_than": older_than}, "older_than"))
    waiting = None if check_mode else Waiting(client, limits)
    segments, _query = list_of(BRANCH, params, client, may_be_missing=check_mode)
    listed = [] if NOT_CREATED_ID in segments else list_resources(client, segments, BRANCH.plural).items
    if listed and age and not client.knows_service_time:
        problem = "The responses have no Date header, so the age of the branches is not known. None was deleted."
        raise ClouddbError("unexpected_response", f"{problem} Check the proxies between this machine and the service.")
    due, warnings = _due(params["name_pattern"], age, listed, client.service_now(), limit)
    deleted: list[Resource] = []
    operations: list[Resource] = []

    def result() -> Result:
        before: dict[str, Any] = {branch["name"]: {"id": branch["id"]} for branch in deleted}
        return {
            "changed": bool(deleted),
            "branch": None,
            "branches": deleted,
            "operations": operations,
            "elapsed": waiting.elapsed() if waiting else 0.0,
            "diff": changed_fields(before, {}),
            "warnings": warnings,
        }

    for branch in due:
        goal = deletion(BRANCH, Find(segments, BRANCH.plural, {"id": branch["id"]}, selector="id"), params["wait"])
        if waiting:
            try:
                done = reach(client, goal, waiting)
            except ClouddbError as error:
                operations += error.result.get("operations", [])
                # Even if no branch is gone yet, its deletion may have begun.
                changed = bool(deleted) or error.result.get("changed", False)
                error.result = {**module_result(BRANCH, error.result), **result(), "changed": changed}
                raise
            operations += done["operations"]
            if not done["changed"]:
                continue  # another sweep has deleted it
        deleted.append(branch)
    return result()


def _due(
    pattern: str, age: timedelta, listed: Sequence[Resource], now: datetime, limit: int
) -> tuple[list[Resource], list[str]]:
    """The branches to delete, children before their parents, and warnings about those that stay."""
    matches = matcher(pattern)
    if listed and not any(matches(str(branch.get("name"))) for branch in listed):
        return [], [f"name_pattern: no branch of the project matches '{pattern}', so none was deleted."]
    due: list[Resource] = []
    kept: list[Resource] = []
    parents = set()
    # A child is newer than its parent.
    for branch in sorted(listed, key=time_of_creation, reverse=True):
        if own_state(branch) == DELETING:
            continue
        is_due = (
            matches(str(branch.get("name")))
            and now - time_of_creation(branch, now) >= age
            and not reason_to_keep(branch)
        )
        if is_due and branch["id"] not in parents:
            due.append(branch)
            continue
        parents.add(branch.get("parent_id"))
        if is_due:
            kept.append(branch)
    names = ", ".join(map(label_of, kept))
    warnings = [f"Not deleted, because other branches were created from: {names}."] if kept else []
    if len(due) > limit:
        problem = f"{len(due)} branches match, but the task deletes at most {limit}."
        warnings.append(f"{problem} Run the task again, or increase max_deletions.")
    return due[:limit], warnings
