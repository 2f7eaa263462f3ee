# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the page of an account report shows: the facts as texts, in the order and number in which they are laid out.

Nothing here is escaped; the templates do that, with every value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...module_utils._timestamps import parse_timestamp
from .operations import ERROR, LABELS, by_label, by_project
from .text import (
    NOTHING,
    ago_text,
    counted,
    days_text,
    duration_text,
    moment_or_none,
    moment_text,
    number_text,
    second_text,
    shortened,
)
from .timelines import (
    STRIP_CELLS,
    STRIP_HEIGHT,
    Window,
    kind_of,
    label_text,
    strip,
    ticks,
    timelines,
)

Row = dict[str, Any]
# What a table shows at once; the rest is folded away.
OPEN_ROWS = 20
FEW = 5
SHARE_ROWS = 8
SMALLEST_PART = 0.015
TIMELINE_ROWS = 50
NAME_LENGTH = 120
ERROR_LENGTH = 400


class Limits(NamedTuple):
    """How much the page shows."""

    most_timelines: int
    most_rows: int


def report_page(facts: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """The page that shows the facts."""
    window = Window(parse_timestamp(facts["since"]), parse_timestamp(facts["generated_at"]))
    return {
        "title": facts["title"],
        "fingerprint": facts["fingerprint"],
        "generated_at": facts["generated_at"],
        "generated": moment_text(window.end),
        "period": f"{moment_text(window.start)} – {moment_text(window.end)}",
        "days": "24 hours" if facts["days"] == 1 else counted(facts["days"], "day"),
        "stale_days": counted(facts["stale_days"], "day"),
        "figures": _figures(facts),
        "attention": _attention(facts),
        "api_keys": _keys(facts["api_keys"], limits),
        "projects": _projects(facts["projects"], limits),
        "operations": _operations(facts["operations"], limits),
        "timelines": _timelines(facts, window, limits),
    }


def _figures(facts: Mapping[str, Any]) -> list[Row]:
    keys, projects, operations = facts["api_keys"], facts["projects"], facts["operations"]
    return [
        {"id": "keys", "value": number_text(keys["total"]), "name": "API key" if keys["total"] == 1 else "API keys"},
        {
            "id": "projects",
            "value": number_text(projects["total"]),
            "name": "project" if projects["total"] == 1 else "projects",
        },
        {
            "id": "operations",
            "value": number_text(operations["total"]),
            "name": "operation" if operations["total"] == 1 else "operations",
        },
        {
            "id": "errors",
            "value": number_text(operations["by_label"][ERROR]),
            "name": "Error" if operations["by_label"][ERROR] == 1 else "Errors",
        },
    ]


def _attention(facts: Mapping[str, Any]) -> list[Row]:
    """What somebody should look at, the most pressing first."""
    keys, projects, operations = facts["api_keys"], facts["projects"], facts["operations"]
    stale = f"unused for {counted(facts['stale_days'], 'day')} or more"
    found = (
        (operations["by_label"][ERROR], "operation ended in an error", "operations ended in errors", "errors"),
        (
            len(projects["unavailable_ids"]),
            "project could not be listed by the service",
            "projects could not be listed by the service",
            "projects",
        ),
        (projects["locked"], "project is locked", "projects are locked", "projects"),
        (keys["never_used"], "API key was never used", "API keys were never used", "keys"),
        (keys["stale"], f"API key is {stale}", f"API keys are {stale}", "keys"),
        (
            keys["duplicate_names"],
            "API key shares its name with another",
            "API keys share their names with others",
            "keys",
        ),
    )
    return [
        {"number": number_text(number), "text": one if number == 1 else several, "id": where}
        for number, one, several, where in found
        if number
    ]


def _table(rows: Sequence[Any], limits: Limits, shown: Callable[[Any], Row], opened: int = OPEN_ROWS) -> Row:
    """The first rows, those folded away, and how many are left out. A few more are not worth folding."""
    taken = [shown(row) for row in rows[: limits.most_rows]]
    opened = len(taken) if 0 < len(taken) - opened <= FEW and opened else opened
    return {
        "rows": taken[:opened],
        "folded": taken[opened:],
        "folded_count": number_text(len(taken[opened:])),
        "left_out": number_text(len(rows) - len(taken)) if len(rows) > len(taken) else "",
    }


def _keys(keys: Mapping[str, Any], limits: Limits) -> Row:
    marked = sorted(keys["list"], key=lambda key: not (key["never_used"] or key["stale"] or key["duplicate_name"]))
    return _table(marked, limits, _key)


def _key(key: Mapping[str, Any]) -> Row:
    return {
        "id": key["id"],
        "name": _name(key["name"]),
        "age": days_text(key["age_days"]),
        "created": moment_text(moment_or_none(key["created_at"])),
        "last_used": ago_text(key["unused_days"]),
        "last_used_on": key["last_used_on"] or "",
        "from": shortened(key["last_used_from_addr"] or NOTHING, NAME_LENGTH),
        "marks": [
            text
            for field, text in (("never_used", "never used"), ("stale", "unused"), ("duplicate_name", "duplicate name"))
            if key[field]
        ],
    }


def _projects(projects: Mapping[str, Any], limits: Limits) -> Row:
    pressing = sorted(projects["list"], key=lambda project: (not project["locked"], -(project["cpu_used_sec"] or 0)))
    return {
        **_table(pressing, limits, _project),
        "cpu_used_sec": number_text(projects["cpu_used_sec"]),
        "unavailable": [
            shortened(project_id, NAME_LENGTH) for project_id in projects["unavailable_ids"][: limits.most_rows]
        ],
        "shares": [
            _shares("Region", projects["by_region"]),
            _shares("Version", {f"Postgres {version}": number for version, number in projects["by_version"].items()}),
            _shares("Platform", projects["by_platform"]),
        ],
    }


def _project(project: Mapping[str, Any]) -> Row:
    return {
        "name": _name(project["name"]),
        "id": shortened(project["id"], NAME_LENGTH),
        "locked": bool(project["locked"]),
        "region": _name(project["region_id"]),
        "platform": _name(project["platform_id"]),
        "version": _name(project["pg_version"]),
        "cpu": number_text(project["cpu_used_sec"]),
        "limit": number_text(project["branch_logical_size_limit"]),
        "created": moment_text(moment_or_none(project["created_at"])),
    }


def _shares(name: str, counts: Mapping[str, int]) -> Row:
    """The most frequent values, what remains in one further row, and the width of each bar."""
    rows = list(counts.items())
    if len(rows) > SHARE_ROWS:
        rest = rows[SHARE_ROWS - 1 :]
        rows = [*rows[: SHARE_ROWS - 1], (f"{len(rest)} others", sum(number for _value, number in rest))]
    most = max((number for _value, number in rows), default=1)
    return {
        "name": name,
        "rows": [
            {"name": _name(value), "count": number_text(number), "width": round(100 * number / most, 1)}
            for value, number in rows
        ],
    }


def _operations(operations: Mapping[str, Any], limits: Limits) -> Row:
    return {
        "total": number_text(operations["total"]),
        "labels": [_label(label, operations["by_label"][label], operations["total"]) for label in LABELS],
        "parts": _parts(operations["by_label"]),
        "statuses": [
            {"status": shortened(status, 40), "count": number_text(number)}
            for status, number in operations["by_status"].items()
        ],
        "actions": [_action(action) for action in operations["by_action"]],
        "slowest": [_operation(operation) for operation in operations["slowest"]],
        "errors": number_text(operations["by_label"][ERROR]),
        "failed": _table(operations["failed"], limits, _operation),
    }


def _label(label: str, number: int, total: int) -> Row:
    percent = 100 * number / total if total else 0
    text = "0" if not number else "< 1" if percent < 1 else f"{percent:.0f}"
    return {"label": label, "kind": kind_of(label), "count": number_text(number), "percent": f"{text} %"}


def _parts(labels: Mapping[str, int]) -> list[Row]:
    """A bar of 100 units, a part for each label; small parts are wide enough to be seen."""
    least = sum(labels.values()) * SMALLEST_PART
    sizes = {label: max(least, labels[label]) for label in LABELS if labels[label]}
    unit, x, parts = 100 / (sum(sizes.values()) or 1), 0.0, []
    for label, size in sizes.items():
        parts.append({"kind": kind_of(label), "x": round(x, 2), "width": round(size * unit, 2)})
        x += size * unit
    return parts


def _action(action: Mapping[str, Any]) -> Row:
    return {
        "action": shortened(action["action"], NAME_LENGTH),
        "total": number_text(action["total"]),
        "counts": [{"kind": kind_of(label), "count": number_text(action["by_label"][label])} for label in LABELS],
        "parts": _parts(action["by_label"]),
        "median": duration_text(action["median_seconds"]),
        "p95": duration_text(action["p95_seconds"]),
        "longest": duration_text(action["longest_seconds"]),
    }


def _operation(operation: Mapping[str, Any]) -> Row:
    return {
        "id": shortened(operation["id"], NAME_LENGTH),
        "project": _name(operation["project_name"] or operation["project_id"]),
        "project_id": shortened(operation["project_id"], NAME_LENGTH),
        "action": shortened(operation["action"], NAME_LENGTH),
        "label": label_text(operation),
        "kind": kind_of(operation["label"]),
        "when": second_text(parse_timestamp(operation["created_at"])),
        "created_at": operation["created_at"],
        "duration": duration_text(operation["duration_seconds"]),
        "failures": counted(operation["failures_count"], "failure")
        if operation["failures_count"] and operation["label"] != ERROR
        else "",
        "on": shortened(operation["endpoint_id"] or operation["branch_id"] or NOTHING, NAME_LENGTH),
        "error": shortened(operation["error"], ERROR_LENGTH) if operation["error"] else "",
    }


def _timelines(facts: Mapping[str, Any], window: Window, limits: Limits) -> Row:
    projects = by_project(facts["operations"]["list"])
    names = {str(project["id"]): project["name"] for project in facts["projects"]["list"]}
    first = dict(list(projects.items())[: limits.most_timelines])
    rest = [(project_id, operations) for project_id, operations in projects.items() if project_id not in first]
    drawn = timelines(first, window)
    return {
        "count": number_text(len(projects)),
        "ticks": ticks(window),
        "labels": [{"label": label, "kind": kind_of(label)} for label in LABELS],
        "strip_width": STRIP_CELLS,
        "strip_height": STRIP_HEIGHT,
        "projects": [
            {
                **_summary(project_id, names, operations),
                **drawn[project_id],
                "rows": [_operation(operation) for operation in operations[:TIMELINE_ROWS]],
            }
            for project_id, operations in first.items()
        ],
        "rest": _table(
            rest,
            limits,
            lambda entry: {**_summary(entry[0], names, entry[1]), "strip": strip(entry[1], window)},
            opened=0,
        ),
    }


def _summary(project_id: str, names: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> Row:
    labels = by_label(operations)
    return {
        "name": _name(names.get(project_id, project_id)),
        "id": shortened(project_id, NAME_LENGTH),
        "total": number_text(len(operations)),
        "count": counted(len(operations), "operation"),
        "counts": [{"label": label, "kind": kind_of(label), "count": number_text(labels[label])} for label in LABELS],
        "spoken": ", ".join(f"{number_text(labels[label])} {label}" for label in LABELS if labels[label]),
        "older": number_text(len(operations) - TIMELINE_ROWS) if len(operations) > TIMELINE_ROWS else "",
    }


def _name(value: Any) -> str:
    return NOTHING if value in (None, "") else shortened(value, NAME_LENGTH)
