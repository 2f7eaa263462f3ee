# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletes the branches that a pattern names, which nobody needs any more. Keeps P3, P4, P9 and P11."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Callable, NamedTuple

from .._errors import ClouddbError, InvalidOption, Result
from .._http.client import Client
from .._http.errors import NotFound
from .._lists import list_resources
from .._operations.operations import MAX_NAMED, time_of_creation
from .._operations.wait import wait_options
from .._operations.waiting import Waiting
from .._options import NOT_CREATED_ID, as_text, integer, not_blank
from .._patterns import matcher, require_clear
from .._timestamps import duration, timestamp_of
from .._untrusted import displayable
from .engine import Engine
from .goal import Find, deletion
from .kinds import BRANCH, list_of
from .refusals import reason_to_keep, root_of
from .state import DELETING, Resource, changed_fields, own_state

DEFAULT_AGE = "7d"


class Rules(NamedTuple):
    """Which branches a sweep deletes, unless others were created from them: C(used_at) is the last activity by branch."""

    pattern: Callable[[str], bool]
    keep: Sequence[Callable[[str], bool]]
    age: timedelta
    unused_for: timedelta
    now: datetime
    used_at: Mapping[str, datetime]

    def select(self, branch: Mapping[str, Any]) -> bool:
        """Whether the branch is deleted. One whose creation has no known time is too young."""
        name, created_at = branch["name"], time_of_creation(branch, self.now)
        # Lines of a file or of a program's output end with white space, and one that stays too long harms nobody.
        is_kept = any(matches(text) for matches in self.keep for text in (name, name.strip()))
        is_old = self.now - created_at >= self.age
        is_unused = self.now - max(created_at, self.used_at.get(branch["id"], created_at)) >= self.unused_for
        return self.pattern(name) and not is_kept and is_old and is_unused and not reason_to_keep(branch)


class Progress(NamedTuple):
    """What a sweep has done so far: C(failed) has the branches that are left, each with the error, C(changed) those that differ now."""

    deleted: list[Resource]
    failed: list[tuple[Resource, ClouddbError]]
    changed: list[str]
    operations: list[Resource]


def sweep(params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """Delete the branches that C(name_pattern) matches, up to C(max_deletions). Returns the result of the module branch.

    One that cannot be deleted does not stop the others. Raises its error at the end, with the branches that were deleted,
    and what Client raises for a list, InvalidOption and ResourceNotFound.
    """
    limit = integer(params, "max_deletions", 1)
    limits = wait_options(params)
    rules = _rules(params)
    waiting = Waiting(client, limits)
    bounded = waiting.bounded_client()
    segments, _query = list_of(BRANCH, params, bounded, may_be_missing=check_mode)
    is_created = NOT_CREATED_ID not in segments
    listed = list_resources(bounded, segments, BRANCH.plural, id=str, name=str).items if is_created else []
    if params["unused_for"] is not None and listed:
        rules = rules._replace(used_at=_used_at(bounded, segments))
    if listed and (rules.age or rules.unused_for) and not bounded.knows_service_time:
        problem = "The responses have no Date header, so the age of the branches is not known. None was deleted."
        raise ClouddbError("unexpected_response", f"{problem} Check the proxies between this machine and the service.")
    rules = rules._replace(now=bounded.service_now())
    due, warnings = _due(rules, listed, limit)
    if listed and not any(rules.pattern(branch["name"]) for branch in listed):
        warnings = [f"name_pattern: no branch of the project matches '{params['name_pattern']}', so none was deleted."]
    done = Progress(due, [], [], [])
    if not check_mode:
        done = _delete_all(client, waiting, rules, segments, due, params["wait"])
    if done.changed:
        warnings.append(f"Not deleted, because they were changed since they were listed: {_names(done.changed)}.")
    before: dict[str, Any] = {branch["name"]: {"id": branch["id"]} for branch in done.deleted}
    result = {
        "changed": bool(done.deleted),
        "branch": None,
        "branches": done.deleted,
        "operations": done.operations,
        "elapsed": waiting.elapsed(),
        "diff": changed_fields(before, {}),
        "warnings": warnings,
    }
    if done.failed:
        raise _failure(done, result)
    return result


def _rules(params: Mapping[str, Any]) -> Rules:
    """The rules that the options describe, without what the service shows. Raises InvalidOption."""
    keep = [] if params["keep"] is None else params["keep"]
    # Ansible would split a text at its commas, JSON included, and then no name would match.
    if not isinstance(keep, list):
        raise InvalidOption("keep", "must be a list of names or patterns. An empty list is [].")
    not_blank(params, "keep")
    texts = [as_text("keep", text, "each item") for text in keep]
    for option, pattern in [("name_pattern", params["name_pattern"]), *(("keep", text) for text in texts)]:
        require_clear(option, pattern)
    is_by_use = params["unused_for"] is not None
    unused_for = timedelta(seconds=duration(params, "unused_for")) if is_by_use else timedelta(0)
    older_than = ("0" if is_by_use else DEFAULT_AGE) if params["older_than"] is None else params["older_than"]
    age = timedelta(seconds=duration({"older_than": older_than}, "older_than"))
    # As a pattern, [WIP] does not match this name.
    kept = [matches for text in texts for matches in (matcher(text.strip()), text.strip().__eq__)]
    return Rules(matcher(params["name_pattern"]), kept, age, unused_for, datetime.min, {})


def _used_at(client: Client, segments: Sequence[str]) -> dict[str, datetime]:
    """When the computes of each branch were last active, by its id; a branch without a known activity is left out."""
    used_at: dict[str, datetime] = {}
    for compute in list_resources(client, (*segments[:2], "endpoints"), "endpoints", branch_id=str).items:
        if active_at := timestamp_of(compute, "last_active"):
            used_at[compute["branch_id"]] = max(active_at, used_at.get(compute["branch_id"], active_at))
    return used_at


def _due(rules: Rules, listed: Sequence[Resource], limit: int) -> tuple[list[Resource], list[str]]:
    """The branches to delete, children before their parents, else the newest first, and warnings about those that stay.

    After a restore, a parent can be newer than its children.
    """
    children: dict[str | None, set[str]] = {}
    for branch in listed:
        children.setdefault(_parent_of(branch), set()).add(branch["id"])
    newest_first = sorted(listed, key=time_of_creation, reverse=True)
    root_id = root_of(listed)
    left = [
        branch
        for branch in newest_first
        if branch["id"] != root_id and own_state(branch) != DELETING and rules.select(branch)
    ]
    due: list[Resource] = []
    gone: set[str] = set()
    while ready := [branch for branch in left if children.get(branch["id"], set()) <= gone]:
        due += ready
        gone.update(branch["id"] for branch in ready)
        left = [branch for branch in left if branch["id"] not in gone]
    kept = _names(branch["name"] for branch in left)
    warnings = [f"Not deleted, because other branches were created from: {kept}."] if kept else []
    if len(due) > limit:
        problem = f"{len(due)} branches match, but the task deletes at most {limit}."
        warnings.append(f"{problem} Run the task again, or increase max_deletions.")
    return due[:limit], warnings


def _delete_all(
    client: Client, waiting: Waiting, rules: Rules, segments: tuple[str, ...], due: Sequence[Resource], wait: bool
) -> Progress:
    """Delete these branches, unless they have changed since they were listed. What became of each."""
    done = Progress([], [], [], [])
    ids = {branch["id"] for branch in due}
    # The name of a branch that is left, by the id of its parent: some services would delete it with its parent.
    left: dict[str | None, str] = {}
    stopped_by: ClouddbError | None = None
    for branch in due:
        name, is_parent_due = displayable(branch["name"], 100), _parent_of(branch) in ids
        try:
            if stopped_by:
                raise ClouddbError(stopped_by.kind, "Its deletion was not tried.", stopped_by.details)
            if branch["id"] in left:
                raise ClouddbError("refused", f"{left[branch['id']]} was created from it, and is left.")
            shown = _shown(waiting.bounded_client(), segments, branch["id"])
            if shown is None:
                continue  # another sweep has deleted it
            if shown["name"] != branch["name"] or not rules.select(shown):
                done.changed.append(branch["name"])
                left[_parent_of(branch)] = name
                continue
            match = {"id": branch["id"], "name": branch["name"]}
            # A parent can only be deleted when the deletion of its children has ended.
            goal = deletion(BRANCH, Find(segments, BRANCH.plural, match), match, wait or is_parent_due)
            outcome = Engine(client, goal, waiting).run()
            done.operations.extend(outcome["operations"])
            if outcome["changed"]:
                done.deleted.append(branch)
        except ClouddbError as error:
            done.operations.extend(error.result.get("operations", []))
            done.failed.append((branch, error))
            left[_parent_of(branch)] = name
            is_over = wait and waiting.elapsed() >= waiting.timeout
            stopped_by = stopped_by or (error if is_over or _stops_all(error) else None)
    return done


def _shown(client: Client, segments: Sequence[str], branch_id: str) -> Resource | None:
    """The branch as it is now; None if it is gone. Somebody may have renamed or protected it while others were deleted."""
    try:
        return {**client.get(*segments, branch_id).object("branch", name=str), "id": branch_id}
    except NotFound:
        return None


def _stops_all(error: ClouddbError) -> bool:
    """Whether the same would happen to the other branches."""
    return error.transient or error.kind in ("unauthorized", "unreachable", "locked")


def _failure(done: Progress, result: Result) -> ClouddbError:
    """The error for the branches that are left, with the result so far."""
    first = done.failed[0][1]
    reasons = " ".join(f"{displayable(branch['name'], 100)}: {error}" for branch, error in done.failed[:MAX_NAMED])
    more = f" And {len(done.failed) - MAX_NAMED} more." if len(done.failed) > MAX_NAMED else ""
    remaining = [{"id": branch["id"], "name": branch["name"], "reason": str(error)} for branch, error in done.failed]
    deleted = "1 branch was" if len(done.deleted) == 1 else f"{len(done.deleted)} branches were"
    were_not = f"{len(done.failed)} {'was' if len(done.failed) == 1 else 'were'} not"
    message = f"{deleted} deleted, {were_not}. {reasons}{more}"
    results = [error.result for _branch, error in done.failed]
    ids = {
        field: [each for one in results for each in one.get(field, [])]
        for field in ("failed_ids", "pending_ids")
        if any(field in one for one in results)
    }
    # Even if no branch is gone yet, its deletion may have begun.
    changed = result["changed"] or any(one.get("changed") for one in results)
    return ClouddbError(
        first.kind, message, {**first.details, "remaining": remaining}, {**result, **ids, "changed": changed}
    )


def _parent_of(branch: Resource) -> str | None:
    return branch.get("parent_id") or None


def _names(names: Iterable[str]) -> str:
    return ", ".join(displayable(name, 100) for name in names)
