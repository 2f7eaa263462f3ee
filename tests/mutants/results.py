# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of mutants, as lines of JSON in a file, each with what it depends on.

A run that was interrupted, or that follows a change of a few files, only runs the mutants whose results are not known.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from mutations import Mutant

DETECTED, SURVIVED = "detected", "survived"
TESTS = Path("tests/unit")


class Result(NamedTuple):
    """What became of a mutant.

    C(test) is the test that detected it, or the signal that ended it. C(source) and C(tests) are hashes of the mutant's
    file, and of the file of that test, or of all tests if none has detected it.
    """

    mutant: Mutant
    status: str
    test: str
    source: str
    tests: str

    def is_current(self) -> bool:
        """Whether the files that it depends on are the same."""
        return (self.source, self.tests) == (digest(Path(self.mutant.path)), _digest_of_tests(self.test))


class Results:
    """The file of results, and those that are current, by mutant."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[Mutant, Result] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            mutant, *fields = json.loads(line)
            result = Result(Mutant(*mutant), *fields)
            if result.is_current():
                self.known[result.mutant] = result

    def add(self, mutant: Mutant, status: str, test: str = "") -> None:
        """Append the result of a mutant."""
        result = Result(mutant, status, test, digest(Path(mutant.path)), _digest_of_tests(test))
        self.known[mutant] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


def _digest_of_tests(test: str) -> str:
    file = Path(test.partition("::")[0])
    return digest(file if file.is_file() else TESTS)


@functools.cache
def digest(path: Path) -> str:
    """A hash of the content of a file, or of the Python files in a folder; empty if there is none."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16] if files else ""
