# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of an account report's page: the facts as texts, sorted and limited for display. Keeps P8.

Values are not escaped here: the templates escape every value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...module_utils._timestamps import parse_timestamp, timestamp_of
from ...module_utils._untrusted import MAX_MESSAGE_LENGTH, displayable, walk
from .operations import ERROR, LABELS, by_label, by_project
from .text import (
    NARROW_SPACE,
    NO_VALUE,
    ago_text,
    count_text,
    datetime_text,
    days_text,
    duration_text,
    number_or_zero,
    number_text,
    time_text,
    truncated,
)
from .timelines import (
    SPARKLINE_HEIGHT,
    SPARKLINE_WIDTH,
    Window,
    css_class,
    sparkline,
    status_text,
    ticks,
    timelines,
)

Row = dict[str, Any]
# Rows of a table that are shown before the folded ones, and how many more are shown rather than folded.
UNFOLDED_ROWS = 20
MAX_EXTRA_ROWS = 5
MAX_BREAKDOWN_ROWS = 8
MIN_PART = 0.015
MAX_TIMELINE_ROWS = 50
MAX_NAME_LENGTH = 120
MAX_ERROR_LENGTH = 400


class PageLimits(NamedTuple):
    """Maximum number of timelines, and of rows in a table."""

    max_timelines: int
    max_rows: int


def report_page(facts: Mapping[str, Any], limits: PageLimits) -> dict[str, Any]:
    """The content of the page, as the templates of the role account_report use it; all texts are displayable."""
    window = Window(parse_timestamp(facts["since"]), parse_timestamp(facts["generated_at"]))
    page = {
        "title": facts["title"],
        "generated_at": facts["generated_at"],
        "generated": datetime_text(window.end),
        "period": f"{datetime_text(window.start)} – {datetime_text(window.end)}",
        "days": "24 hours" if facts["days"] == 1 else count_text(facts["days"], "day"),
        "stale_days": count_text(facts["stale_days"], "day"),
        "figures": _figures(facts),
        "attention": _attention(facts),
        "api_keys": _keys(facts["api_keys"], limits),
        "projects": _projects(facts["projects"], limits),
        "operations": _operations(facts["operations"], limits),
        "timelines": _timelines(facts, window, limits),
    }
    displayed: dict[str, Any] = walk(page, _displayable)
    return displayed


def _displayable(text: str) -> str:
    # NARROW_SPACE, within numbers, is not printable by Python's definition.
    return NARROW_SPACE.join(displayable(part, MAX_MESSAGE_LENGTH) for part in text.split(NARROW_SPACE))


def _figures(facts: Mapping[str, Any]) -> list[Row]:
    found = (
        ("keys", facts["api_keys"]["total"], "API key"),
        ("projects", facts["projects"]["total"], "project"),
        ("operations", facts["operations"]["total"], "operation"),
        ("errors", facts["operations"]["by_label"][ERROR], "Error"),
    )
    return [
        {"id": section, "value": number_text(number), "name": singular if number == 1 else f"{singular}s"}
        for section, number, singular in found
    ]


def _attention(facts: Mapping[str, Any]) -> list[Row]:
    """What needs attention, the most urgent first."""
    keys, projects, operations = facts["api_keys"], facts["projects"], facts["operations"]
    period = f"used for {count_text(facts['stale_days'], 'day')} or more"
    unlisted = len(projects["unavailable_ids"])
    found = (
        ("errors", operations["by_label"][ERROR], "operation", "failed", "failed"),
        ("projects", unlisted, "project", "could not be listed by the service", "could not be listed by the service"),
        ("projects", projects["locked"], "project", "is locked", "are locked"),
        ("keys", keys["never_used"], "API key", "was never used", "were never used"),
        ("keys", keys["stale"], "API key", f"has not been {period}", f"have not been {period}"),
        ("keys", keys["duplicate_names"], "API key", "shares its name with another", "share their names with others"),
    )
    return [
        {
            "id": section,
            "number": number_text(number),
            "text": f"{subject} {singular}" if number == 1 else f"{subject}s {plural}",
        }
        for section, number, subject, singular, plural in found
        if number
    ]


def _table(rows: Sequence[Any], limits: PageLimits, to_row: Callable[[Any], Row], unfolded: int = UNFOLDED_ROWS) -> Row:
    """The first rows, the folded rows, and the number of omitted rows. A few more than UNFOLDED_ROWS are not folded."""
    shown = [to_row(row) for row in rows[: limits.max_rows]]
    unfolded = len(shown) if 0 < len(shown) - unfolded <= MAX_EXTRA_ROWS and unfolded else unfolded
    return {
        "rows": shown[:unfolded],
        "folded": shown[unfolded:],
        "folded_count": number_text(len(shown[unfolded:])),
        "omitted": number_text(len(rows) - len(shown)) if len(rows) > len(shown) else "",
    }


def _keys(keys: Mapping[str, Any], limits: PageLimits) -> Row:
    marked = sorted(keys["list"], key=lambda key: not (key["never_used"] or key["stale"] or key["duplicate_name"]))
    return _table(marked, limits, _key)


def _key(key: Mapping[str, Any]) -> Row:
    return {
        "id": key["id"],
        "name": _name(key["name"]),
        "age": days_text(key["age_days"]),
        "created": datetime_text(timestamp_of(key, "created_at")),
        "last_used": ago_text(key["unused_days"]),
        "last_used_on": key["last_used_on"] or "",
        "from": truncated(key["last_used_from_addr"] or NO_VALUE, MAX_NAME_LENGTH),
        "marks": [
            text
            for field, text in (("never_used", "never used"), ("stale", "idle"), ("duplicate_name", "duplicate name"))
            if key[field]
        ],
    }


def _projects(projects: Mapping[str, Any], limits: PageLimits) -> Row:
    by_urgency = sorted(
        projects["list"], key=lambda project: (not project["locked"], -number_or_zero(project, "cpu_used_sec"))
    )
    return {
        **_table(by_urgency, limits, _project),
        "cpu_used_sec": number_text(projects["cpu_used_sec"]),
        "unavailable": [
            truncated(project_id, MAX_NAME_LENGTH) for project_id in projects["unavailable_ids"][: limits.max_rows]
        ],
        "breakdowns": [
            _breakdown("Region", projects["by_region"]),
            _breakdown(
                "Version", {f"Postgres {version}": number for version, number in projects["by_version"].items()}
            ),
            _breakdown("Platform", projects["by_platform"]),
        ],
    }


def _project(project: Mapping[str, Any]) -> Row:
    return {
        "name": _name(project["name"]),
        "id": truncated(project["id"], MAX_NAME_LENGTH),
        "locked": bool(project["locked"]),
        "region": _name(project["region_id"]),
        "platform": _name(project["platform_id"]),
        "version": _name(project["pg_version"]),
        "cpu": number_text(project["cpu_used_sec"]),
        "limit": number_text(project["branch_logical_size_limit"]),
    }


def _breakdown(name: str, counts: Mapping[str, int]) -> Row:
    """The most frequent values, one row for all others, and the width of each row's bar in percent."""
    rows = list(counts.items())
    if len(rows) > MAX_BREAKDOWN_ROWS:
        rest = rows[MAX_BREAKDOWN_ROWS - 1 :]
        rows = [*rows[: MAX_BREAKDOWN_ROWS - 1], (f"{len(rest)} others", sum(number for _value, number in rest))]
    highest = max((number for _value, number in rows), default=1)
    return {
        "name": name,
        "rows": [
            {"name": _name(value), "count": number_text(number), "width": round(100 * number / highest, 1)}
            for value, number in rows
        ],
    }


def _operations(operations: Mapping[str, Any], limits: PageLimits) -> Row:
    return {
        "labels": [_label(label, operations["by_label"][label], operations["total"]) for label in LABELS],
        "parts": _parts(operations["by_label"]),
        "statuses": [
            {"status": truncated(status, 40), "count": number_text(number)}
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
    return {"label": label, "kind": css_class(label), "count": number_text(number), "percent": f"{text} %"}


def _parts(labels: Mapping[str, int]) -> list[Row]:
    """The parts of a stacked bar with a width of 100, one for each label, each wide enough to be visible."""
    least = sum(labels.values()) * MIN_PART
    sizes = {label: max(least, labels[label]) for label in LABELS if labels[label]}
    unit, x, parts = 100 / (sum(sizes.values()) or 1), 0.0, []
    for label, size in sizes.items():
        parts.append({"kind": css_class(label), "x": round(x, 2), "width": round(size * unit, 2)})
        x += size * unit
    return parts


def _action(action: Mapping[str, Any]) -> Row:
    return {
        "action": truncated(action["action"], MAX_NAME_LENGTH),
        "total": number_text(action["total"]),
        "counts": [{"kind": css_class(label), "count": number_text(action["by_label"][label])} for label in LABELS],
        "parts": _parts(action["by_label"]),
        "median": duration_text(action["median_seconds"]),
        "p95": duration_text(action["p95_seconds"]),
        "longest": duration_text(action["longest_seconds"]),
    }


def _operation(operation: Mapping[str, Any]) -> Row:
    return {
        "id": truncated(operation["id"], MAX_NAME_LENGTH),
        "project": _name_or_id(operation["project_name"], operation["project_id"]),
        "action": truncated(operation["action"], MAX_NAME_LENGTH),
        "label": status_text(operation),
        "kind": css_class(operation["label"]),
        "when": time_text(parse_timestamp(operation["created_at"])),
        "duration": duration_text(operation["duration_seconds"]),
        "failures": count_text(operation["failures_count"], "failure")
        if operation["failures_count"] and operation["label"] != ERROR
        else "",
        "on": truncated(operation["endpoint_id"] or operation["branch_id"] or NO_VALUE, MAX_NAME_LENGTH),
        "error": truncated(operation["error"], MAX_ERROR_LENGTH) if operation["error"] else "",
    }


def _timelines(facts: Mapping[str, Any], window: Window, limits: PageLimits) -> Row:
    projects = by_project(facts["operations"]["list"])
    names = {str(project["id"]): project["name"] for project in facts["projects"]["list"]}
    first = dict(list(projects.items())[: limits.max_timelines])
    rest = [(project_id, operations) for project_id, operations in projects.items() if project_id not in first]
    drawn = timelines(first, window)
    return {
        "ticks": ticks(window),
        "labels": [{"label": label, "kind": css_class(label)} for label in LABELS],
        "sparkline_width": SPARKLINE_WIDTH,
        "sparkline_height": SPARKLINE_HEIGHT,
        "projects": [
            {
                **_summary(project_id, names, operations),
                **drawn[project_id],
                "rows": [_operation(operation) for operation in operations[:MAX_TIMELINE_ROWS]],
            }
            for project_id, operations in first.items()
        ],
        "rest": _table(
            rest,
            limits,
            lambda entry: {**_summary(entry[0], names, entry[1]), "sparkline": sparkline(entry[1], window)},
            unfolded=0,
        ),
    }


def _summary(project_id: str, names: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> Row:
    labels = by_label(operations)
    return {
        "name": _name_or_id(names.get(project_id), project_id),
        "id": truncated(project_id, MAX_NAME_LENGTH),
        "total": number_text(len(operations)),
        "counts": [{"label": label, "kind": css_class(label), "count": number_text(labels[label])} for label in LABELS],
        "summary": ", ".join(f"{number_text(labels[label])} {label}" for label in LABELS if labels[label]),
        "older": number_text(len(operations) - MAX_TIMELINE_ROWS) if len(operations) > MAX_TIMELINE_ROWS else "",
    }


def _name(value: Any) -> str:
    return NO_VALUE if value in (None, "") else truncated(value, MAX_NAME_LENGTH)


def _name_or_id(name: Any, project_id: Any) -> str:
    """The name of an operation's project; its id if it has no name, or if the report has no such project."""
    return _name(project_id if name in (None, "") else name)
