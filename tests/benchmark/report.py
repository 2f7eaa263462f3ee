# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.clouddb.control.tests.benchmark.tables import Table

Results = dict[str, Any]
TASK_NAMES = {
    "ping": "ansible.builtin.ping",
    "uri": "ansible.builtin.uri",
    "project_info": "project_info",
    "ssh_key_info": "hetzner.hcloud.ssh_key_info",
}
IMPORTS = {"collection": "the module's collection", "requests": "requests", "ansible": "Ansible", "python": "Python"}


def machine(results: Results) -> list[Table]:
    details = results["machine"]
    return [Table("Machine and versions", tuple(details), [tuple(details.values())])]


def task_cost(results: Results) -> list[Table]:
    measured = results["task_cost"]
    names = {name: title for name, title in TASK_NAMES.items() if name in measured["payload_bytes"]}
    complete = []
    for settings in ("default", "pipelining"):
        tasks = measured["tasks"][settings]
        for name, task in names.items():
            ratios = tasks["ratios"].get(name, {})
            to_references = [f"{ratios[reference]:.2f}" if ratios else "" for reference in ("uri", "ping")]
            complete.append((settings, task, _ms(tasks[name]["median"]), _ms(tasks[name]["min"]), *to_references))
    parts: list[tuple[str, ...]] = [
        ("size of the payload", *(f"{measured['payload_bytes'][name]:,} bytes" for name in names)),
        ("complete task", *(_ms(measured["tasks"]["default"][name]["min"]) for name in names)),
    ]
    for quantity, title in (("wall", "payload's process"), ("cpu", "payload's processor time")):
        parts.append((title, *(_ms(measured["processes"][name][quantity]) for name in names)))
    for owner, title in IMPORTS.items():
        parts.append((f"imports: {title}", *(_ms(measured["import_seconds"][name][owner]) for name in names)))
    return [
        Table(
            f"Duration of a task in {measured['rounds']} rounds, and median of its ratio to uri and to ping",
            ("Ansible's settings", "task", "median", "minimum", "ratio to uri", "ratio to ping"),
            complete,
        ),
        Table("Parts of a task's duration (minimum of each part)", ("", *names.values()), parts),
    ]


def scale(results: Results) -> list[Table]:
    cases = results["scale"]["cases"]
    listing = [
        (
            f"{case['items']:,} {case['list']}, "
            + (f"{case['page_size']:,} per page" if case["page_size"] else "one array"),
            *(f"{case['module'][quantity] / case['loop'][quantity]:.2f}" for quantity in ("wall", "cpu", "peak_mib")),
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
            *(f"{_microseconds_per_operation(less, more, program):.0f} µs" for program in ("module", "loop", "task")),
        )
        for less, more in zip(growing, growing[1:])
    ]
    largest = [case for case in cases if case["page_size"] == 1000]
    returned = [
        (
            "returned" if case["returned"] else "fetched, not returned",
            *(_s(case[program]["cpu"]) for program in ("module", "task")),
            *(f"{case[program]['peak_mib']:.0f} MiB" for program in ("module", "task")),
        )
        for case in largest
    ]
    return [
        Table(
            f"Ratios of the module's process to a bare loop that fetches the same pages (medians of {results['scale']['runs']} runs)",
            (
                "list",
                "ratio of time",
                "ratio of processor time",
                "ratio of peak memory",
                "module",
                "loop",
                "complete task",
                "module's peak memory",
                "loop's peak memory",
                "sandbox's share of the loop",
            ),
            listing,
        ),
        Table(
            "Processor time per additional operation",
            ("operations", "module", "loop", "complete task"),
            growth,
        ),
        Table(
            f"Processor time and peak memory with and without {largest[0]['items']:,} operations in the result",
            ("operations", "module", "complete task", "module's peak memory", "complete task's peak memory"),
            returned,
        ),
    ]


def summaries(results: Results) -> list[Table]:
    rows = [
        (
            f"{case['operations']:,} of {case['projects']:,} projects",
            case["result"],
            _size(case["result_bytes"]),
            f"{case['module']['peak_mib']:.0f} MiB",
            _s(case["module"]["wall"]),
            _s(case["module"]["cpu"]),
            f"{case['module']['cpu'] / case['operations'] * 1e6:.0f} µs",
        )
        for case in results["summaries"]["cases"]
    ]
    return [
        Table(
            f"One operation_info for all projects, 500 operations each (medians of {results['summaries']['runs']} runs)",
            (
                "operations",
                "returned",
                "size of the result",
                "module's peak memory",
                "module",
                "processor time",
                "processor time per operation",
            ),
            rows,
        )
    ]


def rate_limit(results: Results) -> list[Table]:
    measured = results["rate_limit"]
    row = (
        f"{measured['seconds'] / measured['shortest_seconds']:.2f}",
        _s(measured["seconds"]),
        _s(measured["shortest_seconds"]),
        f"{measured['listed']:,} of {measured['expected']:,}",
        f"{measured['responses_200']:,}",
        f"{measured['responses_429']:,}",
    )
    caption = f"Listing the operations of {measured['projects']} projects at {measured['per_minute']} requests per minute, with bursts of {measured['burst']}"
    return [
        Table(
            caption,
            (
                "ratio to the shortest possible",
                "task",
                "shortest possible",
                "operations listed",
                "200 responses",
                "429 responses",
            ),
            [row],
        )
    ]


def waits(results: Results) -> list[Table]:
    cases = {(case["variant"], case["operations"], case["duration"]): case for case in results["waits"]["cases"]}
    rows = []
    for (variant, operations, duration), ours in cases.items():
        theirs = cases.get(("uri", operations, duration))
        if variant == "operation_wait":
            ratios = [f"{ours[quantity] / theirs[quantity]:.2f}" if theirs else "" for quantity in ("lag", "requests")]
            lags = [_s(case["lag"]) if case else "" for case in (ours, theirs)]
            requests = [f"{case['requests']:.0f}" if case else "" for case in (ours, theirs)]
            rows.append((f"{operations} × {duration} s", *ratios, *lags, *requests))
    shown, hidden = (cases[variant, 1, 300] for variant in ("operation_wait", "operation_wait, no progress"))
    overhead = (
        f"{(shown['lag'] - hidden['lag']) / 300:+.1%}",
        f"{(shown['cpu'] - hidden['cpu']) / 300:+.1%}",
        *(_s(case["lag"]) for case in (shown, hidden)),
        *(_s(case["cpu"]) for case in (shown, hidden)),
        *(f"{case['requests']:.0f}" for case in (shown, hidden)),
    )
    return [
        Table(
            "operation_wait compared with uri, until and delay: 5",
            ("operations", "ratio of lag", "ratio of requests", "lag", "uri's lag", "requests", "uri's requests"),
            rows,
        ),
        Table(
            "A wait of 300 s with and without progress",
            (
                "difference in time",
                "difference in processor time",
                "lag",
                "lag without progress",
                "processor time",
                "processor time without progress",
                "requests",
                "requests without progress",
            ),
            [overhead],
        ),
    ]


def schedules(results: Results) -> list[Table]:
    measured = results["schedules"]
    rows = []
    for intervals in (*measured["ours"], *measured["fixed"]):
        name = f"{intervals['first']:g} s, fixed"
        if intervals["growth"] > 1:
            name = f"{intervals['first']:g} s, each {intervals['growth']:g} times longer, up to {intervals['longest']:g} s (operation_wait)"
        typical, long = intervals["typical"], intervals["long"]
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
    header = ("poll interval", "task longer by", "requests", "lag", "requests (30 s to 5 min)", "lag (30 s to 5 min)")
    return [Table("Means of simulated waits for one operation of 0.1 s to 30 s, and of 30 s to 5 min", header, rows)]


def event_delays(results: Results) -> list[Table]:
    measured = results["event_delays"]
    cases = {(case["projects"], case["has_hints"]): case for case in measured["cases"]}
    rows = [
        (
            f"{projects:,}",
            f"{case['requests_per_minute']:.0f}",
            *(f"{case['busy'][quantity]:.0f} s" for quantity in ("median", "p95", "max")),
            *(_duration(case["idle"][quantity]) for quantity in ("median", "max")),
            *(_duration(cases[projects, True]["idle"][quantity]) for quantity in ("median", "max")),
        )
        for (projects, has_hints), case in cases.items()
        if not has_hints
    ]
    header = (
        "projects",
        "requests sent per minute",
        "busy: median",
        "busy: 95 %",
        "busy: maximum",
        "idle: median",
        "idle: maximum",
        "idle, listed as updated: median",
        "idle, listed as updated: maximum",
    )
    caption = f"Time from a change to its event, with {measured['busy_share']:.0%} of the projects busy (simulation)"
    return [Table(caption, header, rows)]


TABLES: dict[str, Callable[[Results], list[Table]]] = {
    function.__name__: function
    for function in (machine, task_cost, scale, summaries, rate_limit, waits, schedules, event_delays)
}


def _microseconds_per_operation(less: dict[str, Any], more: dict[str, Any], program: str) -> float:
    seconds: float = (more[program]["cpu"] - less[program]["cpu"]) / (more["items"] - less["items"])
    return seconds * 1e6


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _size(number: int) -> str:
    return f"{number / 1_000_000:.1f} MB" if number >= 1_000_000 else f"{number / 1000:.1f} kB"


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
