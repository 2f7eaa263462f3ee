# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Usage, quotas and limits of the projects in an account report, as far as the list of projects shows them. Keeps P3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...module_utils._errors import InvalidOption
from .text import number_or_zero

# The names of the usage and of its quota in the published API document, and the one of the list of projects, if it differs.
FIELDS = {
    "active_time_seconds": "active_time",
    "compute_time_seconds": "cpu_used_sec",
    "written_data_bytes": None,
    "data_transfer_bytes": None,
    "synthetic_storage_size": None,
}


def usage_facts(project: Mapping[str, Any]) -> dict[str, dict[str, int | float]]:
    """The usage that the project shows, and the quotas of its settings; one of 0 is none."""
    shown = {field: next((name for name in (field, other) if name in project), None) for field, other in FIELDS.items()}
    settings = project.get("settings")
    quota = settings.get("quota") if isinstance(settings, Mapping) else None
    quotas = {field: number_or_zero(quota, field) for field in FIELDS} if isinstance(quota, Mapping) else {}
    return {
        "usage": {field: number_or_zero(project, name) for field, name in shown.items() if name},
        "quota": {field: number for field, number in quotas.items() if number > 0},
    }


def checked_limits(limits: Mapping[str, Any]) -> dict[str, int | float]:
    """The limits of usage by field. Raises InvalidOption for another field, and for what is no number."""
    for field, limit in limits.items():
        if field not in FIELDS:
            raise InvalidOption("limits", f"there is no {field}. The fields are {', '.join(FIELDS)}.")
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit >= 0:
            raise InvalidOption("limits", f"{field} must be a number, 0 or more, not {limit!r}.")
    return dict(limits)


def over_limits(projects: Iterable[Mapping[str, Any]], limits: Mapping[str, float]) -> list[dict[str, Any]]:
    """What exceeds a limit. Raises InvalidOption for a limit that no project could exceed."""
    projects = list(projects)
    for field in limits:
        if projects and not any(field in project["usage"] for project in projects):
            raise InvalidOption(
                "limits", f"the list of projects shows no {field}, so no project could exceed this limit."
            )
    return [
        {"id": project["id"], "name": project["name"], "field": field, "used": used, "limit": limit}
        for project in projects
        for field, used in project["usage"].items()
        if (limit := limits.get(field)) is not None and used > limit
    ]
