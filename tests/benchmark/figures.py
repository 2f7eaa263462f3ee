# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of the results, as reproducible SVG files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot

from ansible_collections.clouddb.control.tests.benchmark.report import IMPORTS, TASK_NAMES

Results = dict[str, Any]

# Colors of the Okabe-Ito palette, which color-blind readers can distinguish. Markers and labels differ as well.
OURS, OTHER, THIRD, GRAY = "#0072B2", "#D55E00", "#E69F00", "#767676"

pyplot.rcParams.update(
    {
        "svg.hashsalt": "clouddb.control",
        "figure.facecolor": "white",
        "figure.constrained_layout.use": True,
        "font.size": 11,
        "lines.linewidth": 1.8,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#dddddd",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
    }
)


def task_cost(results: Results) -> Any:
    """Parts of the duration of one task."""
    measured = results["task_cost"]
    imports = measured["import_seconds"]
    names = [name for name in TASK_NAMES if name in imports]
    complete = [measured["tasks"]["default"][name]["min"] for name in names]
    process = [measured["processes"][name]["wall"] for name in names]
    owners = (("ansible", THIRD), ("requests", OTHER), ("collection", OURS))
    imported = [sum(imports[name][owner] for owner, _color in owners) for name in names]
    parts = {
        "Ansible on the controller": ([max(0.0, all_ - own) for all_, own in zip(complete, process)], "#bbbbbb"),
        **{f"imports: {IMPORTS[owner]}": ([imports[name][owner] for name in names], color) for owner, color in owners},
        "other: start of Python, unpacking, the request": (
            [max(0.0, own - part) for own, part in zip(process, imported)],
            "#e4e4e4",
        ),
    }
    figure, axes = pyplot.subplots(figsize=(9, 1.4 + 0.6 * len(names)))
    titles = [TASK_NAMES[name] for name in names]
    left = [0.0] * len(names)
    for label, (seconds, color) in parts.items():
        axes.barh(titles, seconds, left=left, color=color, label=label, edgecolor="white", height=0.6)
        left = [begin + part for begin, part in zip(left, seconds)]
    for position, seconds in enumerate(complete):
        axes.text(left[position], position, f" {seconds * 1000:.0f} ms", va="center")
    axes.invert_yaxis()
    axes.set_xlim(0, max(left) * 1.12)
    axes.set_xlabel("seconds")
    axes.grid(axis="y", visible=False)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def scale(results: Results) -> Any:
    """Processor time and memory by the number of operations."""
    cases = [case for case in results["scale"]["cases"] if case["list"] == "operations" and case["page_size"] == 100]
    items = [case["items"] for case in cases]
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.2))
    quantities = {"cpu": ("Processor time", "seconds"), "peak_mib": ("Peak memory", "MiB")}
    for axes, (quantity, (title, unit)) in zip(panels, quantities.items()):
        for program, label, color, marker in (
            ("task", "complete task", GRAY, "^"),
            ("module", "the module alone", OURS, "o"),
            ("loop", "bare requests loop", OTHER, "s"),
        ):
            axes.plot(items, [case[program][quantity] for case in cases], color=color, marker=marker, label=label)
        axes.set(title=title, xlabel="operations listed, 100 per page", ylabel=unit, xlim=(0, None), ylim=(0, None))
        axes.xaxis.set_major_formatter("{x:,.0f}")
    panels[0].legend()
    return figure


def waits(results: Results) -> Any:
    """Lag and number of requests of each real wait."""
    cases = results["waits"]["cases"]
    by_variant = {
        variant: {(case["operations"], case["duration"]): case for case in cases if case["variant"] == variant}
        for variant in ("operation_wait", "uri")
    }
    names = sorted(by_variant["operation_wait"])
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.6), sharey=True)
    titles = {"lag": "Lag (s)", "requests": "Requests sent"}
    for axes, (quantity, title) in zip(panels, titles.items()):
        for position, name in enumerate(names):
            values = [each[name][quantity] for each in by_variant.values() if name in each]
            axes.plot(values, [position] * len(values), color="#bbbbbb", linewidth=2, zorder=1)
        for variant, label, color, marker in (
            ("operation_wait", "operation_wait", OURS, "o"),
            ("uri", "uri, until, delay: 5", OTHER, "s"),
        ):
            found = [
                (by_variant[variant][name][quantity], position)
                for position, name in enumerate(names)
                if name in by_variant[variant]
            ]
            axes.scatter(*zip(*found), color=color, marker=marker, s=55, label=label, zorder=2)
        axes.set(xscale="log", title=title)
        axes.xaxis.set_major_formatter("{x:g}")
    panels[0].set_yticks(range(len(names)), [f"{operations} × {duration} s" for operations, duration in names])
    panels[0].set_ylabel("operations × duration")
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def schedules(results: Results) -> Any:
    """Number of requests and lag, for fixed and for growing poll intervals."""
    measured = results["schedules"]
    figure, (typical, long) = pyplot.subplots(1, 2, figsize=(10, 4.4))
    for axes, band, quantity, factor, side, offset in (
        (typical, "typical", "stretch", 100, "left", (7, 5)),
        (long, "long", "lag", 1, "right", (-7, -12)),
    ):
        points = {
            kind: [(intervals[band]["requests"], factor * intervals[band][quantity]) for intervals in measured[kind]]
            for kind in ("growing", "fixed", "ours")
        }
        axes.scatter(*zip(*points["growing"]), color=GRAY, marker="x", s=30, label="other growing intervals")
        axes.plot(*zip(*points["fixed"]), color=OTHER, marker="s", label="fixed interval")
        axes.scatter(*zip(*points["ours"]), color=OURS, marker="o", s=90, label="operation_wait", zorder=3)
        for intervals, point in zip(measured["fixed"], points["fixed"]):
            axes.annotate(
                f"{intervals['first']:g} s", point, xytext=offset, textcoords="offset points", ha=side, color=OTHER
            )
        axes.set_xlabel("requests per wait (mean)")
        axes.set_ylim(bottom=0)
    typical.set(title="Operations of 0.1 s to 30 s", ylabel="task longer by (%, mean)", xlim=(0, None))
    long.set(title="Operations of 30 s to 5 min", ylabel="lag (s, mean)", xscale="log", xlim=(20, 220))
    long.minorticks_off()
    long.set_xticks([25, 50, 100, 200], ["25", "50", "100", "200"])
    typical.legend()
    return figure


FIGURES: dict[str, Callable[[Results], Any]] = {
    function.__name__: function for function in (task_cost, scale, waits, schedules)
}


def draw(results: Results, folder: Path) -> None:
    """Write the figures of all measurements that have results."""
    for name, create in FIGURES.items():
        if name not in results:
            continue
        figure = create(results)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
