# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the message about a missing project says, and names similar to a misspelled one. Keeps P11."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from ._errors import ClouddbError
from ._projects import Filters, Projects
from ._untrusted import displayable

MAX_SIMILAR = 5
# Comparing more candidates could take longer than the deadline allows.
MAX_COMPARED = 2000


def no_project(found: Projects, filters: Filters, query: Mapping[str, Any]) -> ClouddbError:
    """The error if no project was found; its message names what was asked for, and projects with similar names."""
    wanted = {option: value for option, value in filters._asdict().items() if value is not None}
    conditions = [f"{option} '{value}'" for option, value in wanted.items()]
    conditions += [f"query {name}={value}" for name, value in query.items()]
    sentences = [f"There is no project with {' and '.join(conditions)}." if conditions else "There are no projects."]
    if filters.name and filters.name not in found.names and (near := similar(filters.name, found.names)):
        sentences.append(f"Did you mean {' or '.join(displayable(name, 100) for name in near)}?")
    if filters.project_id in found.names:
        sentences.append("This is the name of a project: set name.")
    sentences += found.warnings or ["Check the options, and whether the API key may access the project."]
    details: dict[str, Any] = {**wanted, **({"query": dict(query)} if query else {})}
    if found.unavailable_ids:
        details["unavailable_project_ids"] = found.unavailable_ids
    return ClouddbError("not_found", " ".join(sentences), details)


def similar(text: str, candidates: Iterable[str], least: float = 0.6) -> list[str]:
    """The candidates similar to this text, whatever their case, the most similar first; none of too many to compare.

    C(least) is the least similarity, from 0 to 1.
    """
    by_lower_case = {candidate.lower(): candidate for candidate in sorted(candidates, reverse=True)}
    if len(by_lower_case) > MAX_COMPARED:
        return []
    return [by_lower_case[near] for near in get_close_matches(text.lower(), by_lower_case, MAX_SIMILAR, least)]
