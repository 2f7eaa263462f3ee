# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of an account report, as a text file for Prometheus. Keeps P8.

The text is valid OpenMetrics 1.0 and, because it has only gauges and a histogram without timestamps, also valid in the
older text format that the textfile collector of node_exporter reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any

from ...module_utils._operations.status import ACTIONS, STATUSES
from ...module_utils._policy.policy import KINDS
from ...module_utils._timestamps import timestamp_of
from ...module_utils._untrusted import displayable
from .operations import UNFINISHED, grouped
from .text import template_environment

KEY_STATES = ("never_used", "stale", "used", "unknown")
# Findings about keys that are gone, in the results of api_key_policy; a check mode has revoked none.
RESOLVED_OUTCOMES = ("revoked", "gone")
BUCKETS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


def metrics_text(
    facts: Mapping[str, Any],
    account: str,
    interval: float,
    policy: Mapping[str, Any],
    now: datetime,
) -> str:
    """The metrics of C(facts), each with the label C(account).

    C(interval) are the seconds between two reports, C(policy) the result of the API key policy, empty without one.
    """
    keys, projects, operations = (facts[section]["list"] for section in ("api_keys", "projects", "operations"))
    findings, resolved = policy.get("findings"), () if policy.get("check_mode") else RESOLVED_OUTCOMES
    open_findings = [finding for finding in findings or () if finding["outcome"] not in resolved]
    labeled = [{**operation, "action": _text(operation["action"])} for operation in operations]
    by_action = grouped(labeled, "action")
    # All known actions are included, so that their series always exist.
    actions = sorted({*ACTIONS, *by_action})
    template = template_environment(_escaped).get_template("metrics.prom.j2")
    text = template.render(
        account=displayable(account),
        now=now.timestamp(),
        interval=interval,
        period=facts["days"] * 86400,
        keys=_numbers((_key_state(key) for key in keys), KEY_STATES),
        findings=_numbers((_text(finding["kind"]) for finding in open_findings), KINDS if findings is not None else ()),
        oldest_key=_oldest(keys),
        projects=_numbers(_text(project["region_id"]) for project in projects),
        unavailable_projects=len(facts["projects"]["unavailable_ids"]),
        unreadable_projects=len(facts["projects"]["unreadable_ids"]),
        usage=[(str(project["id"]), project["usage"], project["quota"]) for project in projects],
        over_limits=_numbers((over["field"] for over in facts["projects"]["over_limits"]), facts["projects"]["limits"]),
        operations=_numbers(
            ((operation["action"], _text(operation["status"])) for operation in labeled), product(actions, STATUSES)
        ),
        actions=[_action(action, by_action.get(action, [])) for action in actions],
        buckets=BUCKETS,
    )
    return f"{text}\n"


def _action(name: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    unfinished = [operation for operation in operations if operation["label"] in UNFINISHED]
    seconds = [each["duration_seconds"] for each in operations if each["duration_seconds"] is not None]
    return {"name": name, "unfinished": len(unfinished), "oldest": _oldest(unfinished), "seconds": seconds}


def _escaped(value: str | float) -> str | float:
    """What the template writes for a label or a number."""
    return value.replace("\\", "\\\\").replace('"', '\\"') if isinstance(value, str) else float(value)


def _text(value: object) -> str:
    """The value for a label of a metric. Prometheus drops labels with an empty value."""
    return "unknown" if value in (None, "") else displayable(value)


def _key_state(key: Mapping[str, Any]) -> str:
    if key["never_used"]:
        return "never_used"
    return "unknown" if key["unused_days"] is None else "stale" if key["stale"] else "used"


def _numbers(found: Iterable[Any], known: Iterable[Any] = ()) -> list[tuple[Any, int]]:
    """The values and the number of times that each of them was found, 0 for known ones that were not."""
    return sorted({**dict.fromkeys(known, 0), **Counter(found)}.items())


def _oldest(items: Iterable[Mapping[str, Any]]) -> float | None:
    """The Unix time at which the oldest of these resources was created, if any."""
    return min((at.timestamp() for item in items if (at := timestamp_of(item, "created_at"))), default=None)
