# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of an account report. Keeps P8: every value is escaped, displayable, and shortened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from ...module_utils._timestamps import parse_timestamp, timestamp_of
from .operations import ERROR, LABELS, MAX_SLOWEST, by_label, grouped, word
from .text import (
    NO_VALUE,
    age_text,
    count_text,
    datetime_text,
    duration_text,
    number_or_zero,
    number_text,
    template_environment,
    time_text,
    truncated,
)
from .timelines import status_text, timelines

MAX_NAME_LENGTH = 120
MAX_ERROR_LENGTH = 400
# How many items an entry of what needs attention names, and how long each may be.
MAX_EXAMPLES = 3
MAX_EXAMPLE_LENGTH = 100
# The smallest visible part of a bar.
MIN_PART = 0.015


def report_page(facts: Mapping[str, Any], max_timelines: int, max_rows: int, project_url: str) -> str:
    """The HTML of the page. C(project_url) is the address of a project in the web console."""
    environment = template_environment(_shown, autoescape=True)
    environment.filters.update(
        age=age_text,
        by_label=by_label,
        counted=count_text,
        duration=duration_text,
        kind=lambda label: label.lower().replace(" ", "-"),
        long=lambda text: escape(truncated(text, MAX_ERROR_LENGTH)),
        moment=lambda item, field: datetime_text(timestamp_of(item, field)),
        number=number_text,
        parts=_parts,
        status=status_text,
        time=lambda operation: time_text(operation["created_at"]),
        word=word,
        url=lambda project_id, url: escape(url.replace("{project_id}", quote(str(project_id), safe=""))),
    )
    keys, projects, operations = (facts[section]["list"] for section in ("api_keys", "projects", "operations"))
    by_project = list(grouped(operations, "project_id").values())
    by_project.sort(key=lambda group: -by_label(group)[ERROR])
    since, now = (parse_timestamp(facts[field]) for field in ("since", "generated_at"))
    return environment.get_template("report.html.j2").render(
        facts=facts,
        max_rows=max_rows,
        project_url=project_url,
        attention=attention(facts),
        keys=sorted(keys, key=lambda key: not (key["never_used"] or key["stale"] or key["duplicate_name"])),
        used=[project for project in projects if set(project["usage"]) - {"compute_time_seconds"} or project["quota"]],
        over={each["id"] for each in facts["projects"]["over_limits"]},
        projects=sorted(projects, key=lambda each: (not each["locked"], -number_or_zero(each, "cpu_used_sec"))),
        labels=[label for label in LABELS if facts["operations"]["by_label"][label]],
        slowest=_slowest(operations),
        timelines=timelines(by_project[:max_timelines], since, now),
        other_projects=by_project[max_timelines:],
    )


def summary(facts: Mapping[str, Any]) -> str:
    """The numbers of keys, projects and operations."""
    sections = {"api_keys": "API key", "projects": "project", "operations": "operation"}
    return ", ".join(count_text(facts[section]["total"], singular) for section, singular in sections.items())


def attention(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What needs attention, the most urgent first: the section of the page, and a text."""
    keys, projects, operations = facts["api_keys"], facts["projects"], facts["operations"]
    failed, unfinished, over = operations["failed"], operations["long_unfinished"], projects["over_limits"]
    unlisted = "could not be listed by the service"
    idle = f"not been used for {count_text(facts['stale_days'], 'day')} or more"
    hour, unread = "been unfinished for more than an hour", "operations that could not be fetched"
    hanging, exceeded, which = _named(unfinished, "created_at"), _exceeded(over), _named(failed, "updated_at")
    found: tuple[tuple[str, int, str, str, str], ...] = (
        ("failed", len(failed), "operation", f"failed{which}", f"failed{which}"),
        ("unfinished", len(unfinished), "operation", f"has {hour}{hanging}", f"have {hour}{hanging}"),
        ("projects", len(projects["unreadable_ids"]), "project", f"has {unread}", f"have {unread}"),
        (
            "projects",
            len({each["id"] for each in over}),
            "project",
            f"exceeds a limit of usage{exceeded}",
            f"exceed a limit of usage{exceeded}",
        ),
        ("projects", len(projects["unavailable_ids"]), "project", unlisted, unlisted),
        ("projects", projects["locked"], "project", "is locked", "are locked"),
        ("keys", keys["never_used"], "API key", "was never used", "were never used"),
        ("keys", keys["stale"], "API key", f"has {idle}", f"have {idle}"),
        ("keys", keys["duplicate_names"], "API key", "shares its name with another", "share their names with others"),
    )
    return [
        (section, f"{count_text(number, subject)} {one if number == 1 else many}")
        for section, number, subject, one, many in found
        if number
    ]


def _named(operations: Sequence[Mapping[str, Any]], since: str) -> str:
    """Which operations these are, as C(: create_branch of shop since 21 Nov 2026, 11:04 (no space left)), without repetitions.

    C(since) is the field with the time, of which the earliest counts.
    """
    times: dict[tuple[str, str, str], list[datetime]] = {}
    for each in operations:
        subject = f"{each['action']} of {each['project_name'] or each['project_id']}"
        error = f" ({each['error']})" if each["error"] else ""
        # Projects can share a name.
        group = times.setdefault((str(each["project_id"]), subject, error), [])
        group.append(timestamp_of(each, since) or parse_timestamp(each["created_at"]))
    return _examples(
        f"{subject} since {datetime_text(min(group))}{error}" for (_id, subject, error), group in times.items()
    )


def _exceeded(over: Sequence[Mapping[str, Any]]) -> str:
    """Which limits of usage are exceeded, as C(: shop (active_time_seconds 7,200 of 3,600))."""
    return _examples(
        f"{each['name'] or each['id']} ({each['field']} {number_text(each['used'])} of {number_text(each['limit'])})"
        for each in over
    )


def _examples(texts: Iterable[str]) -> str:
    found = list(dict.fromkeys(truncated(text, MAX_EXAMPLE_LENGTH) for text in texts))
    more = [f"and {count_text(len(found) - MAX_EXAMPLES, 'other')}"] if len(found) > MAX_EXAMPLES else []
    return f": {'; '.join([*found[:MAX_EXAMPLES], *more])}"


def _shown(value: Any) -> Any:
    """What the templates write for a value; markup is a part of the page."""
    if value in (None, ""):
        return NO_VALUE
    return truncated(value, MAX_NAME_LENGTH) if isinstance(value, str) and not isinstance(value, Markup) else value


def _slowest(operations: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The slowest operations; those that the page shows alike are one group."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    timed = (operation for operation in operations if operation["duration_seconds"] is not None)
    for operation in sorted(timed, key=lambda each: -each["duration_seconds"]):
        fields = (operation["project_id"], operation["action"], operation["status"])
        groups.setdefault((*fields, duration_text(operation["duration_seconds"])), []).append(operation)
    return list(groups.values())[:MAX_SLOWEST]


def _parts(labels: Mapping[str, int]) -> list[dict[str, Any]]:
    """The parts of a stacked bar with a width of 100, one for each label, each wide enough to be visible."""
    least = sum(labels.values()) * MIN_PART
    sizes = {label: max(least, labels[label]) for label in LABELS if labels[label]}
    x, parts = 0.0, []
    for label, size in sizes.items():
        width = 100 * size / sum(sizes.values())
        parts.append({"label": label, "x": round(x, 2), "width": round(width, 2)})
        x += width
    return parts
