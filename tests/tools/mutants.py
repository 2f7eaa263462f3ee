# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs mutmut on the modules, module_utils and the event source: ``mutants.py [PATH...]``.

A path, or a part of one such as ``_http/client`` or ``_keys``, limits the run to these files. Mutants that no unit test
detects are written to .build/mutants.diff. The settings are in tests/mutants/mutmut.toml.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import NamedTuple

from workspace import CHECKOUT, Workspace, exit_on_signals, temporary_workspace

SETTINGS = CHECKOUT / "tests" / "mutants" / "mutmut.toml"
SURVIVORS = CHECKOUT / ".build" / "mutants.diff"
COLLECTION = "ansible_collections/clouddb/control"
REQUIRED_SCORE = 90
DETECTED = {"killed", "timeout", "segfault"}
UNDETECTED = {"survived", "no tests", "suspicious"}


class Part(NamedTuple):
    """Files to change, as glob patterns, and the tests to run, as paths below tests/unit."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


# The client and what all files share need tests of their own: nearly every test executes them, which would take hours.
PARTS = (
    Part(
        ("plugins/module_utils/_http/*.py", "plugins/module_utils/*.py"),
        ("plugins/module_utils", "plugins/security/test_tls.py"),
    ),
    Part(
        ("plugins/plugin_utils/_events/*.py", "extensions/eda/plugins/event_source/*.py"),
        ("plugins/plugin_utils", "extensions"),
    ),
    Part(
        ("plugins/modules/*.py", "plugins/module_utils/_[!h]*/*.py"),
        ("plugins/modules", "plugins/module_utils", "test_consistency.py"),
    ),
)


def files_of(part: Part, names: list[str]) -> list[str]:
    """The files of a part that define functions, without suffix; with names, those whose path contains one."""
    found = [path for pattern in part.files for path in CHECKOUT.glob(pattern)]
    paths = [
        str(path.relative_to(CHECKOUT).with_suffix("")) for path in found if "def " in path.read_text(encoding="utf-8")
    ]
    return sorted(path for path in paths if not names or any(f"/{name}/" in f"/{path}/" for name in names))


def mutmut(workspace: Workspace, *arguments: str) -> list[str]:
    """Run a command of mutmut and return the lines that it prints."""
    command = [str(workspace.bin / "python"), "-m", "mutmut", *arguments]
    return subprocess.run(
        command, cwd=workspace.root, env=workspace.env, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()


def mutate(files: list[str], tests: tuple[str, ...]) -> tuple[Counter[str], list[str]]:
    """Count the mutants of the files by status, and return the diffs of the undetected ones."""
    lists = {
        "only_mutate": [f"{COLLECTION}/{path}.py" for path in files],
        "pytest_add_cli_args_test_selection": [f"{COLLECTION}/tests/unit/{test}" for test in tests],
    }
    with temporary_workspace() as workspace:
        settings = [
            SETTINGS.read_text(encoding="utf-8"),
            *(f"{name} = {json.dumps(paths)}\n" for name, paths in lists.items()),
        ]
        (workspace.root / "pyproject.toml").write_text("".join(settings), encoding="utf-8")
        run = [str(workspace.bin / "python"), "-m", "mutmut", "run"]
        subprocess.run(run, cwd=workspace.root, env=workspace.env, check=True)
        results = dict(
            line.strip().rsplit(": ", 1) for line in mutmut(workspace, "results", "--all", "true") if ": " in line
        )
        undetected = [mutant for mutant, status in results.items() if status in UNDETECTED]
        diffs = [line for mutant in undetected for line in mutmut(workspace, "show", mutant)]
        return Counter(results.values()), diffs


def main() -> int:
    """Run mutmut on each part and print the score."""
    names = [name.removesuffix(".py") for name in sys.argv[1:]]
    parts = [(files, part.tests) for part in PARTS if (files := files_of(part, names))]
    every_file = [f"/{path}/" for part in PARTS for path in files_of(part, [])]
    if unknown := [name for name in names if not any(f"/{name}/" in path for path in every_file)]:
        sys.exit(
            f"No file matches {', '.join(unknown)}. The files are:\n" + "\n".join(p.strip("/") for p in every_file)
        )
    exit_on_signals()
    counts: Counter[str] = Counter()
    diffs: list[str] = []
    for files, tests in parts:
        statuses, undetected = mutate(files, tests)
        counts += statuses
        diffs += undetected
    SURVIVORS.parent.mkdir(exist_ok=True)
    SURVIVORS.write_text("\n".join(diffs), encoding="utf-8")
    score = 100 * sum(counts[status] for status in DETECTED) / counts.total()
    print(f"{counts.total()} mutants: {', '.join(f'{count} {status}' for status, count in counts.most_common())}")
    print(
        f"{score:.1f} % detected, {REQUIRED_SCORE} % required; diffs of the others: {SURVIVORS.relative_to(CHECKOUT)}"
    )
    return score < REQUIRED_SCORE or bool(set(counts) - DETECTED - UNDETECTED)


if __name__ == "__main__":
    sys.exit(main())
