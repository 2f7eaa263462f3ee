# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why the service refuses a request, as its lists show: in check mode beforehand, else afterwards. Keeps P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._errors import ClouddbError, InvalidOption
from .._http.client import Client
from .._http.errors import RequestFailed
from .._lists import list_resources, there_is_no
from .._untrusted import displayable
from .compare import contains, fields_of
from .goal import Find, Goal, Refusal, ResourceRequest
from .lookup import MAX_NAMED, label_of
from .state import ABSENT, DELETING, own_state


def refusal_of(client: Client, goal: Goal, request: ResourceRequest) -> Refusal | None:
    """Why the service's lists show that it refuses the goal's request; None if they do not, or cannot be fetched."""
    if goal.refuses is None or goal.find is None or not goal.find.has_all_values:
        return None
    try:
        return goal.refuses(client, goal.find, request.body)
    except RequestFailed:
        return None


def branch_refusal(client: Client, find: Find, body: Mapping[str, Any] | None) -> Refusal | None:
    """Why a branch cannot be deleted, by a request without a C(body), or renamed."""
    listed = list_resources(client, find.segments, find.field).items
    if body is not None:
        name = fields_of(body, {}).get("name")
        others = [each for each in listed if each.get("name") == name and not contains(each, find.match)]
        if name == find.match.get("name", name) or not others:
            return None
        return Refusal(
            InvalidOption("new_name", f"there is another branch of this name, {label_of(others[0])}"), "deletes it"
        )
    present = [branch for branch in listed if own_state(branch) not in (ABSENT, DELETING)]
    for branch in (branch for branch in present if contains(branch, find.match)):
        children = [_name_of(each) for each in present if each.get("parent_id") == branch.get("id")]
        reason, remedy = reason_to_keep(branch), ""
        if children and not reason:
            reason = f"other branches were created from it. Delete these first: {', '.join(children[:MAX_NAMED])}."
            remedy = "deletes them"
        if reason:
            return Refusal(ClouddbError("refused", f"Branch {_name_of(branch)} cannot be deleted: {reason}"), remedy)
    return None


def restore_refusal(client: Client, find: Find, body: Mapping[str, Any] | None) -> Refusal | None:
    """Why a branch is not restored without a name for its present state: that is the source, or others were created from it."""
    fields, own_id = body or {}, find.match["id"]
    if fields.get("preserve_under_name"):
        return None
    if fields.get("source_branch_id") == own_id:
        return Refusal(InvalidOption("preserve_as", "is required to restore a branch from its own history"))
    listed = list_resources(client, find.segments, find.field).items
    children = [_name_of(each) for each in listed if each.get("parent_id") == own_id]
    problem = f"is required, because other branches were created from this one: {', '.join(children[:MAX_NAMED])}"
    return Refusal(InvalidOption("preserve_as", problem), "deletes them") if children else None


def reason_to_keep(branch: Mapping[str, Any]) -> str:
    """Why the branch cannot be deleted, even without children; empty if it can be."""
    if branch.get("default"):
        return "it is the default branch of the project. Make another branch the default first."
    if branch.get("protected"):
        return "it is protected. Set protected: false first."
    return ""


def _name_of(branch: Mapping[str, Any]) -> str:
    return displayable(branch.get("name") or label_of(branch), 100)


def database_refusal(client: Client, find: Find, body: Mapping[str, Any] | None) -> Refusal | None:
    """Why a database cannot have the owner in C(body): it is no user of the branch."""
    owner = fields_of(body, {}).get("owner_name")
    if owner is None:
        return None
    listed = list_resources(client, (*find.segments[:-1], "roles"), "roles")
    if owner in listed.names:
        return None
    return Refusal(there_is_no("owner", "user", listed, owner), "creates it")
