# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures, as SVG that comes out the same for the same results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot

Results = dict[str, Any]

# From the palette of Okabe and Ito, which colour-blind readers can tell apart; shapes and labels differ as well.
OURS, OTHER, THIRD, GREY = "#0072B2", "#D55E00", "#E69F00", "#767676"

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
    """Where the time of one task goes."""
    measured = results["task_cost"]
    names = ["ping", "uri", "project_info"]
    imports = measured["import_seconds"]
    whole = {name: measured["tasks"]["default"][name]["min"] for name in names}
    process = {name: measured["processes"][name]["wall"] for name in names}
    imported = {
        name: sum(imports[name][owner] for owner in ("ansible", "requests", "this collection")) for name in names
    }
    parts = {
        "Ansible on the controller": ([max(0.0, whole[name] - process[name]) for name in names], "#bbbbbb"),
        "imports: Ansible's basics": ([imports[name]["ansible"] for name in names], THIRD),
        "imports: requests": ([imports[name]["requests"] for name in names], OTHER),
        "imports: this collection": ([imports[name]["this collection"] for name in names], OURS),
        "the rest: Python's start, unpacking, the call": (
            [max(0.0, process[name] - imported[name]) for name in names],
            "#e4e4e4",
        ),
    }
    figure, axes = pyplot.subplots(figsize=(9, 3.2))
    left = [0.0] * len(names)
    for label, (seconds, colour) in parts.items():
        axes.barh(names, seconds, left=left, color=colour, label=label, edgecolor="white", height=0.6)
        left = [begin + part for begin, part in zip(left, seconds)]
    for position, name in enumerate(names):
        axes.text(left[position], position, f" {whole[name] * 1000:.0f} ms", va="center")
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
        for program, label, colour, marker in (
            ("task", "whole task", GREY, "^"),
            ("module", "the module alone", OURS, "o"),
            ("loop", "bare requests loop", OTHER, "s"),
        ):
            axes.plot(items, [case[program][quantity] for case in cases], color=colour, marker=marker, label=label)
        axes.set(title=title, xlabel="operations listed, 100 a page", ylabel=unit, xlim=(0, None), ylim=(0, None))
        axes.xaxis.set_major_formatter("{x:,.0f}")
    panels[0].legend()
    return figure


def waits(results: Results) -> Any:
    """Lag and requests of real waits, case by case."""
    cases = results["waits"]["cases"]
    of_way = {
        way: {(case["operations"], case["duration"]): case for case in cases if case["way"] == way}
        for way in ("operation_wait", "uri")
    }
    names = sorted(of_way["operation_wait"])
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.6), sharey=True)
    titles = {"lag": "From the operations' end to the task's (s)", "requests": "Requests sent"}
    for axes, (quantity, title) in zip(panels, titles.items()):
        for position, name in enumerate(names):
            values = [of_way[way][name][quantity] for way in of_way if name in of_way[way]]
            axes.plot(values, [position] * len(values), color="#bbbbbb", linewidth=2, zorder=1)
        for way, label, colour, marker in (
            ("operation_wait", "operation_wait", OURS, "o"),
            ("uri", "uri, until, delay: 5", OTHER, "s"),
        ):
            found = [
                (of_way[way][name][quantity], position) for position, name in enumerate(names) if name in of_way[way]
            ]
            axes.scatter(*zip(*found), color=colour, marker=marker, s=55, label=label, zorder=2)
        axes.set(xscale="log", title=title)
        axes.xaxis.set_major_formatter("{x:g}")
    panels[0].set_yticks(range(len(names)), [f"{operations} × {duration} s" for operations, duration in names])
    panels[0].set_ylabel("operations × duration")
    panels[0].invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def schedules(results: Results) -> Any:
    """Requests against lag, for fixed and for growing pauses."""
    measured = results["schedules"]
    figure, (typical, long) = pyplot.subplots(1, 2, figsize=(10, 4.4))
    for axes, band, quantity, factor, side, offset in (
        (typical, "typical", "stretch", 100, "left", (7, 5)),
        (long, "long", "lag", 1, "right", (-7, -12)),
    ):
        points = {
            kind: [(pauses[band]["requests"], factor * pauses[band][quantity]) for pauses in measured[kind]]
            for kind in ("growing", "fixed", "ours")
        }
        axes.scatter(*zip(*points["growing"]), color=GREY, marker="x", s=30, label="other growing pauses")
        axes.plot(*zip(*points["fixed"]), color=OTHER, marker="s", label="fixed interval")
        axes.scatter(*zip(*points["ours"]), color=OURS, marker="o", s=90, label="operation_wait", zorder=3)
        for pauses, point in zip(measured["fixed"], points["fixed"]):
            axes.annotate(
                f"{pauses['first']:g} s", point, xytext=offset, textcoords="offset points", ha=side, color=OTHER
            )
        axes.set_xlabel("requests for one wait (mean)")
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
    """Write the figures of what was measured."""
    for name, make in FIGURES.items():
        if name not in results:
            continue
        figure = make(results)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
