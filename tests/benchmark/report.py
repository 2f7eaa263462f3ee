# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables that tell the results: ratios first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.clouddb.control.tests.benchmark.tables import Table

Results = dict[str, Any]
TASK_NAMES = {"ping": "ansible.builtin.ping", "uri": "ansible.builtin.uri", "project_info": "project_info"}


def machine(results: Results) -> list[Table]:
    details = results["machine"]
    return [Table("What was measured on", tuple(details), [tuple(details.values())])]


def task_cost(results: Results) -> list[Table]:
    measured = results["task_cost"]
    whole = []
    for settings, title in (("default", "as installed"), ("pipelining", "pipelining")):
        tasks = measured["tasks"][settings]
        ratios = [f"{tasks['ratios'][name]:.2f}" for name in ("of_uri", "of_ping")]
        whole.append((title, *ratios, *(_median_and_min(tasks[name]) for name in ("project_info", "uri", "ping"))))
    parts: list[tuple[str, ...]] = [
        ("size of the payload", *(f"{measured['payload_bytes'][name]:,} bytes" for name in TASK_NAMES))
    ]
    parts.append(("whole task", *(_ms(measured["tasks"]["default"][name]["min"]) for name in TASK_NAMES)))
    for figure, title in (("wall", "of it, the payload's process"), ("cpu", "of that, processor time")):
        parts.append((title, *(_ms(measured["processes"][name][figure]) for name in TASK_NAMES)))
    for owner in measured["import_seconds"]["ping"]:
        parts.append((f"imports: {owner}", *(_ms(measured["import_seconds"][name][owner]) for name in TASK_NAMES)))
    return [
        Table(
            f"project_info beside uri and ping: medians of {measured['rounds']} rounds, and the fastest in brackets",
            ("Ansible's settings", "of uri", "of ping", "project_info", "uri", "ping"),
            whole,
        ),
        Table("Where a task's time goes (the quickest run of each part)", ("", *TASK_NAMES.values()), parts),
    ]


def scale(results: Results) -> list[Table]:
    cases = results["scale"]["cases"]
    listing = [
        (
            f"{case['items']:,} {case['list']}, {case['page_size']:,} a page",
            *(f"{case['module'][figure] / case['loop'][figure]:.2f}" for figure in ("wall", "cpu", "peak_mib")),
            *(_s(case[program]["wall"]) for program in ("module", "loop", "task")),
            *(f"{case[program]['peak_mib']:.0f} MiB" for program in ("module", "loop")),
            f"{case['sandbox_share_of_loop']:.0%}",
        )
        for case in cases
        if case["returned"]
    ]
    growing = [case for case in cases if case["page_size"] == 100]
    growth = [
        (
            f"{less['items']:,} to {more['items']:,}",
            *(f"{_microseconds_each(less, more, program):.0f} µs" for program in ("module", "loop", "task")),
        )
        for less, more in zip(growing, growing[1:])
    ]
    most = [case for case in cases if case["page_size"] == 1000]
    returned = [
        (
            "returned" if case["returned"] else "read, not returned",
            *(_s(case[program]["cpu"]) for program in ("module", "task")),
            *(f"{case[program]['peak_mib']:.0f} MiB" for program in ("module", "task")),
        )
        for case in most
    ]
    return [
        Table(
            f"The module's process beside a bare loop that reads the same pages (medians of {results['scale']['runs']} runs)",
            (
                "list",
                "time",
                "processor time",
                "memory",
                "module",
                "loop",
                "whole task",
                "module's peak",
                "loop's peak",
                "sandbox's share of the loop",
            ),
            listing,
        ),
        Table(
            "Processor time for each further operation",
            ("from so many operations to so many", "module", "loop", "whole task"),
            growth,
        ),
        Table(
            f"What Ansible's result costs: {most[0]['items']:,} operations (processor time, peak memory)",
            ("operations", "module", "whole task", "module's peak", "whole task's peak"),
            returned,
        ),
    ]


def rate_limit(results: Results) -> list[Table]:
    measured = results["rate_limit"]
    row = (
        f"{measured['seconds'] / measured['shortest_seconds']:.2f}",
        _s(measured["seconds"]),
        _s(measured["shortest_seconds"]),
        f"{measured['listed']:,} of {measured['expected']:,}",
        f"{measured['answered']:,}",
        f"{measured['refused']:,}",
    )
    caption = f"The operations of {measured['projects']} projects at {measured['per_minute']} requests a minute, {measured['burst']} at once"
    return [
        Table(
            caption,
            (
                "of the shortest possible",
                "task",
                "shortest possible",
                "operations listed",
                "requests answered",
                "refused with 429",
            ),
            [row],
        )
    ]


def waits(results: Results) -> list[Table]:
    cases = {(case["way"], case["operations"], case["duration"]): case for case in results["waits"]["cases"]}
    rows = []
    for (way, operations, duration), ours in cases.items():
        theirs = cases.get(("uri", operations, duration))
        if way == "operation_wait":
            ratios = [f"{ours[figure] / theirs[figure]:.2f}" if theirs else "" for figure in ("lag", "requests")]
            lags = [_s(case["lag"]) if case else "" for case in (ours, theirs)]
            requests = [f"{case['requests']:.0f}" if case else "" for case in (ours, theirs)]
            rows.append((f"{operations} × {duration} s", *ratios, *lags, *requests))
    shown, silent = (cases[way, 1, 300] for way in ("operation_wait", "operation_wait, no progress"))
    overhead = (
        f"{(shown['lag'] - silent['lag']) / 300:+.1%}",
        f"{(shown['cpu'] - silent['cpu']) / 300:+.1%}",
        *(_s(case["lag"]) for case in (shown, silent)),
        *(_s(case["cpu"]) for case in (shown, silent)),
        *(f"{case['requests']:.0f}" for case in (shown, silent)),
    )
    return [
        Table(
            "operation_wait beside uri with until and delay: 5",
            ("operations", "lag, of uri's", "requests, of uri's", "lag", "uri's lag", "requests", "uri's requests"),
            rows,
        ),
        Table(
            "What showing progress adds to a wait of 300 s (with progress, without it)",
            ("time", "processor", "lag", "without", "processor time", "without", "requests", "without"),
            [overhead],
        ),
    ]


def schedules(results: Results) -> list[Table]:
    measured = results["schedules"]
    rows = []
    for pauses in (*measured["ours"], *measured["fixed"]):
        name = f"every {pauses['first']:g} s"
        if pauses["growth"] > 1:
            name = f"{pauses['first']:g} s, then {pauses['growth']:g} times longer each, up to {pauses['longest']:g} s (operation_wait)"
        typical, long = pauses["typical"], pauses["long"]
        rows.append(
            (
                name,
                f"{typical['stretch']:.0%}",
                f"{typical['requests']:.1f}",
                _s(typical["lag"]),
                f"{long['requests']:.0f}",
                _s(long["lag"]),
            )
        )
    header = ("pauses", "task longer by", "requests", "lag", "requests (30 s to 5 min)", "lag (30 s to 5 min)")
    return [Table("One operation of 0.1 s to 30 s, and of 30 s to 5 min: means of simulated waits", header, rows)]


TABLES: dict[str, Callable[[Results], list[Table]]] = {
    function.__name__: function for function in (machine, task_cost, scale, rate_limit, waits, schedules)
}


def _microseconds_each(less: dict[str, Any], more: dict[str, Any], program: str) -> float:
    seconds: float = (more[program]["cpu"] - less[program]["cpu"]) / (more["items"] - less["items"])
    return seconds * 1e6


def _median_and_min(summary: dict[str, float]) -> str:
    return f"{_ms(summary['median'])} ({_ms(summary['min'])})"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
