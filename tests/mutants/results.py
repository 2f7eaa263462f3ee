# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of mutants in a file of JSON lines, the mutants that no test can notice, and the score."""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml
from mutations import Mutant

DETECTED, SURVIVED, BROKEN = "detected", "survived", "broken"


class Result(NamedTuple):
    """What became of a mutant: C(test) noticed it, or how many tests did not; C(depends) is a hash of the tests that this depends on."""

    status: str
    test: str
    depends: str


@functools.cache
def digest(path: Path) -> str:
    """A hash of a file, or of the Python files in a folder."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


class Results:
    """The file of results, which is appended to. The last line about a mutant counts."""

    def __init__(self, path: Path, tests: Path) -> None:
        self.path, self.tests = path, tests
        self.results: dict[str, Result] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                result = json.loads(line)
                self.results[result["key"]] = Result(result["status"], result["test"], result["depends"])

    def get(self, mutant: Mutant) -> Result | None:
        """The result, unless its file or the tests have changed since."""
        result = self.results.get(_key(mutant))
        return result if result and result.depends == self._depends(result.status, result.test) else None

    def add(self, mutant: Mutant, status: str, test: str) -> None:
        result = Result(status, test, self._depends(status, test))
        self.results[_key(mutant)] = result
        line = {"key": _key(mutant), **result._asdict(), "mutant": mutant._asdict()}
        with self.path.open("a", encoding="utf-8") as results:
            results.write(json.dumps(line) + "\n")

    def _depends(self, status: str, test: str) -> str:
        file = Path(test.partition("::")[0])
        return digest(file if status == DETECTED and file.is_file() else self.tests)


def _key(mutant: Mutant) -> str:
    return hashlib.sha256(json.dumps([mutant, digest(Path(mutant.path))]).encode()).hexdigest()[:24]


class Change(NamedTuple):
    """A mutant without its position, which stays the same when other lines of the file change."""

    path: str
    scope: str
    before: str
    after: str


def change_of(mutant: Mutant) -> Change:
    before, after = mutant.change(Path(mutant.path).read_bytes())
    return Change(mutant.path, mutant.scope, before, after)


def read_equivalent(path: Path) -> dict[Change, str]:
    """The mutants that no test can notice, with the reasons."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return {Change(*(entry[field].strip() for field in Change._fields)): entry["reason"].strip() for entry in entries}


def report(
    mutants: Iterable[Mutant], results: Results, equivalent: dict[Change, str]
) -> tuple[float, list[str], list[str]]:
    """Print the score of each file; returns the score, the diffs of undetected mutants, and errors in C(equivalent)."""
    counts: dict[str, Counter[str]] = {}
    diffs, survived = [], set()
    for mutant in mutants:
        result = results.get(mutant)
        status = result.status if result else BROKEN
        count = counts.setdefault(mutant.path, Counter())
        if status != DETECTED:
            change = change_of(mutant)
            survived.add(change)
            if change in equivalent:
                status = "equivalent"
            else:
                diffs.append(diff(mutant))
        count[status] += 1
    for path, count in counts.items():
        print(
            f"{_score(count):6.1f} %  {path}: {', '.join(f'{number} {status}' for status, number in count.most_common())}"
        )
    total = sum(counts.values(), Counter[str]())
    print(
        f"{_score(total):6.1f} %  of {total.total()}: {', '.join(f'{number} {status}' for status, number in total.most_common())}"
    )
    errors = [
        f"{change.path}, {change.scope}: no mutant survives that changes {change.before!r} to {change.after!r}"
        for change in equivalent
        if change not in survived and (change.path in counts or not Path(change.path).exists())
    ]
    return _score(total), diffs, errors


def _score(count: Counter[str]) -> float:
    possible = count.total() - count["equivalent"]
    return 100 * count[DETECTED] / possible if possible else 100.0


def diff(mutant: Mutant) -> str:
    """The change as a diff that patch(1) applies."""
    source = Path(mutant.path).read_bytes()
    before, after = (text.decode().splitlines(keepends=True) for text in (source, mutant.apply(source)))
    return "".join(difflib.unified_diff(before, after, f"a/{mutant.path}", f"b/{mutant.path}"))
