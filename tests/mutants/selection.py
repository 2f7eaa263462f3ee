# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chooses the tests that are run with a mutant, in the order in which they will probably notice it."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count, zip_longest
from pathlib import Path

from forked_tests import Test
from mutations import Mutant

# The tests with a mutant take no longer than this without it, except for the first one. Others are not run: if a mutant is not
# noticed by the many tests that this allows, it counts as undetected.
SECONDS_PER_MUTANT = 6.0
# What pytest itself needs for a test.
SECONDS_OF_PYTEST = 0.005

# The names of the tests that execute a line, by path and line; "" stands for the import of the tests.
Contexts = Mapping[str, Mapping[int, Sequence[str]]]


class Selection:
    """Knows which tests execute which lines of the files, and which of them have noticed mutants."""

    def __init__(self, contexts: Contexts, tests: Mapping[str, Test]) -> None:
        self.contexts, self.tests = contexts, tests
        self._size: dict[str, int] = defaultdict(int)
        self._lines: dict[tuple[str, str], set[int]] = defaultdict(set)
        for path, lines in contexts.items():
            for line, names in lines.items():
                for name in names:
                    self._size[name] += 1
                    self._lines[path, name].add(line)
        self._noticed: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)

    def remember(self, mutant: Mutant, test: str) -> None:
        """Let the test that noticed a mutant be an early one for the next mutants of the function and the file."""
        for place in ((mutant.path, mutant.scope), (mutant.path,)):
            self._noticed[place].pop(test, None)
            self._noticed[place][test] = None

    def is_imported(self, mutant: Mutant) -> bool:
        """Whether the line is executed by an import, so that the mutant must be imported again."""
        return not mutant.function or "" in self.contexts[mutant.path].get(mutant.line, ())

    def candidates(self, mutant: Mutant) -> list[str]:
        """The tests that execute the line: in turn those that noticed other mutants, those written for the file, and others.

        For a line that is executed by an import, the tests that use what its statement defines, then other tests of the file.
        """
        path = mutant.path
        if self.is_imported(mutant):
            users = self._users(path, mutant.line)
            executed = self._executing(path, self.contexts[path])
            names = users | executed | self._mentioning(Path(path).stem)
        else:
            # Not every line of a statement is recorded.
            names = users = executed = self._executing(path, [mutant.line]) or self._executing(
                path, _innermost_statement(path, mutant.line)
            )
        ranked = self._spread(path, names, lambda name: (name not in users, name not in executed))
        own = [name for name in ranked if name.startswith(_test_file(path))]
        first = self._noticed_by(names, path, mutant.scope)
        others = zip_longest(self._noticed_by(names, path), own, ranked)
        return list(dict.fromkeys([*first, *(name for names in others for name in names if name)]))

    def _spread(self, path: str, names: Collection[str], rank: Callable[[str], tuple[bool, bool]]) -> list[str]:
        """By rank; within a rank, one test of each set of lines of the file first, and those that execute little first."""

        def cost(name: str) -> float:
            return self._size.get(name, 1) * (0.02 + self.tests[name].processor)

        turns: dict[tuple[object, ...], Iterator[int]] = defaultdict(count)
        order = {
            name: (rank(name), next(turns[rank(name), frozenset(self._lines.get((path, name), ()))]), cost(name))
            for name in sorted(names, key=cost)
        }
        return sorted(names, key=order.__getitem__)

    def chosen(self, candidates: Sequence[str]) -> list[Test]:
        """The first of these tests, up to SECONDS_PER_MUTANT."""
        chosen: list[Test] = []
        seconds = 0.0
        for name in candidates:
            seconds += SECONDS_OF_PYTEST + self.tests[name].processor
            if chosen and seconds > SECONDS_PER_MUTANT:
                break
            chosen.append(self.tests[name])
        return chosen

    def _noticed_by(self, names: Collection[str], *place: str) -> list[str]:
        return [name for name in reversed(self._noticed[place]) if name in names]

    def _executing(self, path: str, lines: Collection[int]) -> set[str]:
        contexts = self.contexts[path]
        return {name for line in lines for name in contexts.get(line, ()) if name in self.tests}

    def _mentioning(self, word: str) -> set[str]:
        return {name for name, test in self.tests.items() if word in _content(test.item.path)}

    def _users(self, path: str, line: int) -> set[str]:
        """The tests that execute the statement, or a line with a name that it defines."""
        lines, names = _statement(path, line)
        users = self._executing(path, lines)
        if names:
            pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
            for other in self.contexts:
                found = [number for number, text in enumerate(_lines(other), 1) if pattern.search(text)]
                users |= self._executing(other, found)
        return users


def _test_file(path: str) -> str:
    """The beginning of the names of the files with the tests of a file."""
    folder, _slash, stem = path.replace("/_", "/").removesuffix(".py").rpartition("/")
    return f"tests/unit/{folder}/test_{stem}"


@functools.cache
def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _lines(path: str) -> list[str]:
    return _content(Path(path)).splitlines()


@functools.cache
def _statements(path: str) -> list[ast.stmt]:
    return ast.parse(_content(Path(path))).body


def _innermost_statement(path: str, line: int) -> range:
    """The lines of the statement that a line belongs to, and of no statement around that one."""
    lines = range(line, line + 1)
    statements: Sequence[ast.AST] = _statements(path)
    while around := next(
        (each for each in statements if isinstance(each, ast.stmt) and line in range(each.lineno, _end(each))), None
    ):
        lines = range(around.lineno, _end(around))
        # The handlers of a try statement hold statements as well.
        parts = list(ast.iter_child_nodes(around))
        statements = [
            *parts,
            *(inner for part in parts if not isinstance(part, ast.stmt) for inner in ast.iter_child_nodes(part)),
        ]
    return lines


def _end(statement: ast.stmt) -> int:
    return (statement.end_lineno or statement.lineno) + 1


def _statement(path: str, line: int) -> tuple[range, list[str]]:
    """The lines of the statement outside of functions that a line belongs to, and the names that it defines."""
    for statement in _statements(path):
        decorators = getattr(statement, "decorator_list", [])
        begin = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        if line in range(begin, _end(statement)):
            return range(begin, _end(statement)), sorted(set(_names(statement)))
    return range(line, line + 1), []


def _names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    yield node.id
