# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host names of projects in the inventory.

Ansible reads the variables of a host from files of this name in C(host_vars), may render it as a template, and takes the
name of a group for the group.

Keeps P8.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

# Names that Ansible already uses for something else.
LOCAL_NAMES = ("localhost", "127.0.0.1")
RESERVED_NAMES = ("all", "ungrouped", *LOCAL_NAMES)
# With an id of the maximum length, the name still fits into the name of a file.
MAX_NAME_LENGTH = 100


def host_names(
    projects: Sequence[dict[str, Any]],
    preferences: Sequence[str],
    groups: Collection[str],
    earlier: Mapping[str, Collection[str]],
) -> dict[str, str]:
    """A host name for each project id: the first of the preferred fields that can be a name, or the id.

    No two names are the same, regardless of case, because file systems may not distinguish it, and none is reserved or
    that of a group. C(earlier) are the names that other projects may have already, each with the ids of its project. A
    project that has one of its possible names already keeps it.
    """
    unavailable = {name.lower() for name in (*RESERVED_NAMES, *groups)}
    owners, claims = defaultdict(list), defaultdict(list)
    for name, ids in earlier.items():
        owners[name.lower()].append(ids)
    # With ranks: a name that a project already has outranks one that is made from an id, which outranks all others.
    candidates: dict[str, list[tuple[int, str]]] = {}
    for project in projects:
        names = list(enumerate(_candidates(project, preferences)))
        kept = [(len(names), name) for _rank, name in names if project["id"] in earlier.get(name, ())]
        candidates[project["id"]] = [*kept, *names]
        for rank, name in candidates[project["id"]]:
            claims[name.lower()].append((rank, project["id"]))

    def is_free(name: str, rank: int, project_id: str) -> bool:
        """Whether no other project has the name already, or could get it with the same or a higher rank."""
        is_available = name not in unavailable and all(project_id in ids for ids in owners.get(name, ()))
        return is_available and all(other == project_id or claimed < rank for claimed, other in claims[name])

    return {
        project_id: next((name for rank, name in names if is_free(name.lower(), rank, project_id)), names[-1][1])
        for project_id, names in candidates.items()
    }


def _candidates(project: dict[str, Any], preferences: Sequence[str]) -> list[str]:
    values = [*map(project.get, preferences), project["id"]]
    name = next(_host_name(value) for value in values if isinstance(value, str) and re.search("[A-Za-z0-9]", value))
    unique = _host_name(project["id"])
    # Different ids can be the same host name.
    return [name, f"{name}-{unique}", unique, f"{unique}-{hashlib.sha256(project['id'].encode()).hexdigest()[:16]}"]


def _host_name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]|^[.-]", "_", text[:MAX_NAME_LENGTH])
    # In host_vars, Ansible appends these endings to the name of a host.
    return re.sub(r"\.(?=(?:ya?ml|json)$)", "_", name, flags=re.IGNORECASE)
