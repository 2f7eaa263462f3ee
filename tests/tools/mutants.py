# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes the code in small ways and checks that a unit test fails: C(mutants.py [PATH...]).

A path, or a part of one such as C(_http/client) or C(_keys), limits the run to these files. The results are kept in
.build/mutants.jsonl, so that an interrupted run can be continued. The changes that no test detects are written to
.build/mutants.diff, except for those in tests/mutants/equivalent.toml, which no test could detect.
"""

from __future__ import annotations

import difflib
import os
import sys
import tomllib
from pathlib import Path

from workspace import CHECKOUT, exit_on_signals, temporary_workspace

FOLDER = CHECKOUT / "tests" / "mutants"
sys.path.insert(0, str(FOLDER))

from mutations import Mutant, mutants_of  # noqa: E402
from results import DETECTED, SURVIVED, Results  # noqa: E402

RESULTS = CHECKOUT / ".build" / "mutants.jsonl"
SURVIVORS = CHECKOUT / ".build" / "mutants.diff"
FOLDERS = ("plugins", "extensions/eda/plugins")
# The documentation of an option group has no code.
EXCLUDED = "plugins/doc_fragments/"
REQUIRED_SCORE = 95


def files_of(names: list[str]) -> list[str]:
    """The files to change; with names, those whose path contains one. Exits for a name that is in no path."""
    every = [
        str(path.relative_to(CHECKOUT))
        for folder in FOLDERS
        for path in sorted((CHECKOUT / folder).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    every = [path for path in every if not path.startswith(EXCLUDED)]
    names = [name.removesuffix(".py") for name in names]
    if unknown := [name for name in names if not any(f"/{name}/" in f"/{path[:-3]}/" for path in every)]:
        sys.exit(f"No file matches {', '.join(unknown)}. The files are:\n" + "\n".join(every))
    return [path for path in every if not names or any(f"/{name}/" in f"/{path[:-3]}/" for name in names)]


def change(mutant: Mutant) -> str:
    """The changed lines of a file, as in a diff."""
    source = Path(mutant.path).read_bytes()
    before, after = source.decode().splitlines(), mutant.apply(source).decode().splitlines()
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[3:]
    return "\n".join(line[0] + line[1:].strip() for line in lines)


def show(paths: list[str], results: Results) -> bool:
    """Print the score, write the survivors, and return whether everything is as it should be."""
    reasons = tomllib.loads((FOLDER / "equivalent.toml").read_text(encoding="utf-8")).get("equivalent", [])
    equivalent = {(entry["path"], entry["change"].strip()) for entry in reasons if entry["path"] in paths}
    found: set[tuple[str, str]] = set()
    survivors: list[str] = []
    other: list[str] = []
    number = 0
    for path in paths:
        left = total = 0
        for mutant in mutants_of(path):
            result = results.known[mutant]
            if result.status == SURVIVED and (path, change(mutant)) in equivalent:
                found.add((path, change(mutant)))
                continue
            total += 1
            if result.status == SURVIVED:
                left += 1
                survivors.append(f"# {path}:{mutant.line}\n{change(mutant)}\n")
            elif result.status != DETECTED:
                other.append(f"{path}:{mutant.line}: {result.status}")
        number += total
        if left:
            print(f"{path}: {left} of {total} not detected")
    SURVIVORS.write_text("\n".join(survivors), encoding="utf-8")
    for problem in [*other, *(f"equivalent.toml: no mutant of {path} is\n{text}" for path, text in equivalent - found)]:
        print(problem)
    score = 100 * (number - len(survivors)) / max(1, number)
    print(
        f"{score:.1f} % of {number} mutants detected, {REQUIRED_SCORE} % required; "
        f"{len(found)} more can't be detected. The others are in {SURVIVORS.relative_to(CHECKOUT)}."
    )
    return score >= REQUIRED_SCORE and not other and equivalent <= found


def main() -> int:
    """Run the mutants and show the score."""
    paths = files_of(sys.argv[1:])
    exit_on_signals()
    RESULTS.parent.mkdir(exist_ok=True)
    with (
        temporary_workspace() as workspace,
        workspace.start("python", "tests/mutants/run.py", str(RESULTS), *paths) as process,
    ):
        if process.wait():
            return 1
    os.chdir(CHECKOUT)
    return 0 if show(paths, Results(RESULTS)) else 1


if __name__ == "__main__":
    sys.exit(main())
