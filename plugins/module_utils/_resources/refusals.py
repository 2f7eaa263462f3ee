# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why the service refuses a request, as its lists show: in check mode beforehand, else afterwards. Keeps P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import ClouddbError
from .._http.client import Client
from .._untrusted import displayable
from .compare import contains, fields_of
from .goal import Find
from .lookup import MAX_NAMED, ResourceError, label_of, list_resources
from .parents import not_found
from .state import ABSENT, DELETING, own_state


def branch_refusal(client: Client, find: Find, body: Mapping[str, Any] | None) -> ClouddbError | None:
    """The error for a deletion, which has no C(body), of a branch that has to stay."""
    if body is not None:
        return None
    listed = list_resources(client, find.segments, find.field).items
    present = [branch for branch in listed if own_state(branch) not in (ABSENT, DELETING)]
    for branch in (branch for branch in present if contains(branch, find.match)):
        children = [_name_of(each) for each in present if each.get("parent_id") == branch.get("id")]
        if reason := reason_to_keep(branch, children):
            return ResourceError("refused", f"Branch {_name_of(branch)} cannot be deleted: {reason}")
    return None


def reason_to_keep(branch: Mapping[str, Any], children: Sequence[str] = ()) -> str:
    """Why the branch with these C(children) cannot be deleted; empty if it can be."""
    if branch.get("default"):
        return "it is the default branch of the project. Make another branch the default first."
    if branch.get("protected"):
        return "it is protected. Set protected: false first."
    if children:
        return f"other branches were created from it. Delete these first: {', '.join(children[:MAX_NAMED])}."
    return ""


def _name_of(branch: Mapping[str, Any]) -> str:
    return displayable(branch.get("name") or label_of(branch), 100)


def database_refusal(client: Client, find: Find, body: Mapping[str, Any] | None) -> ClouddbError | None:
    """The error for an owner that is no user of the branch."""
    owner = fields_of(body, {}).get("owner_name")
    if owner is None:
        return None
    listed = list_resources(client, (*find.segments[:-1], "roles"), "roles")
    is_user = any(user.get("name") == owner for user in listed.items)
    return None if is_user else not_found("owner", listed, owner)
