# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The projects in an account report. Keeps P1 and P3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils._untrusted import without_templates
from .text import number_or_zero, scalar

FIELDS = (
    "id",
    "name",
    "region_id",
    "platform_id",
    "pg_version",
    "locked",
    "cpu_used_sec",
    "branch_logical_size_limit",
    "created_at",
)


def project_facts(projects: Sequence[Mapping[str, Any]], unavailable_ids: Sequence[str]) -> dict[str, Any]:
    """The projects sorted by name, their numbers by region, version and platform, and their total compute seconds."""
    return {
        "total": len(projects),
        "locked": sum(bool(project.get("locked")) for project in projects),
        "cpu_used_sec": sum(number_or_zero(project, "cpu_used_sec") for project in projects),
        "by_region": counts(project.get("region_id") for project in projects),
        "by_version": counts(project.get("pg_version") for project in projects),
        "by_platform": counts(project.get("platform_id") for project in projects),
        "unavailable_ids": sorted(map(str, unavailable_ids)),
        "list": sorted(
            ({field: scalar(project, field) for field in FIELDS} for project in projects),
            key=lambda project: (str(project["name"]).casefold(), str(project["id"])),
        ),
    }


def counts(values: Any) -> dict[str, int]:
    """The number of occurrences of each value, the most frequent first; a missing value is C(unknown)."""
    found = Counter("unknown" if value in (None, "") else without_templates(str(value)) for value in values)
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))
