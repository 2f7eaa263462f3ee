# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists small changes of the code that no unit test notices, in .build/mutants.json: ``mutants.py [FILE...]``.

Each change, a mutant, meets the tests that run its line. Without files, it takes the lines that changed since the last tag.
mutmut changes neither tables nor decorated functions, such as routes, and cosmic-ray cannot choose the tests.
"""

from __future__ import annotations

import ast
import copy
import importlib
import json
import multiprocessing
import os
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from coverage import CoverageData
from release import git
from suites import BUILD
from workspace import exit_on_signals, temporary_workspace

CODE = (":(glob)plugins/**/*.py", ":(glob)roles/*/files/**/*.py", ":(glob)extensions/**/*.py")
PAIRS = "Eq NotEq, In NotIn, Is IsNot, Lt LtE, Gt GtE, Add Sub"
OTHER = {one: other for pair in PAIRS.split(", ") for one, other in (pair.split(), pair.split()[::-1])}
MEMBERS = {"Dict": ["values", "keys"], "BoolOp": ["values"], "Call": ["keywords"], "Set": ["elts"]}
MEMBERS |= {"Tuple": ["elts"], "List": ["elts"]}
STAGES = (slice(0, 10), slice(10, 80))  # of the tests for a mutant
SECONDS = 120
PRELOADED = ("ansible.plugins.loader", "fastapi.testclient", "hypothesis", "requests")


def changed_lines() -> dict[str, set[int]]:
    """The numbers of the lines that changed since the last tag, by file."""
    found: dict[str, set[int]] = {}
    options = ("-U0", "--no-ext-diff", "--dst-prefix=b/", "--diff-filter=d")
    for part in git("diff", *options, git("describe", "--tags", "--abbrev=0"), "--", *CODE).split("\n+++ b/")[1:]:
        hunks = re.findall(r"^@@ \S+ \+(\d+),?(\d*) @@", part, re.MULTILINE)
        found[part.partition("\n")[0]] = {int(start) + n for start, count in hunks for n in range(int(count or 1))}
    return found


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """What mutants have in place of this node, each with the node or the member that it changes."""
    fields = MEMBERS.get(type(node).__name__, [])
    members = getattr(node, fields[0]) if fields else []
    for number, member in enumerate(members if len(members) > 1 or isinstance(node, ast.Call) else []):
        mutant = copy.deepcopy(node)
        for field in fields:
            del getattr(mutant, field)[number]
        yield member, ast.unparse(mutant)
    operators = [type(each).__name__ for each in getattr(node, "ops", [getattr(node, "op", None)])]
    value = getattr(node, "value", None)
    if len(operators) == 1 and operators[0] in OTHER and isinstance(node, ast.expr):
        mutant, operator = copy.deepcopy(node), getattr(ast, OTHER[operators[0]])()
        mutant.__dict__.update(ops=[operator], op=operator)
        yield node, ast.unparse(mutant)
    elif operators == ["Not"]:
        yield node, ast.unparse(node.operand)  # type: ignore[attr-defined]
    elif isinstance(node, ast.Return) and value and ast.unparse(value) != "None":
        yield node, "return None"
    elif isinstance(node, ast.Expr) and isinstance(value, ast.Call):
        yield node, "pass"
    elif isinstance(node, ast.Constant) and isinstance(value, (bool, int, float)):
        yield node, repr(not value if isinstance(value, bool) else value + 1)
    elif isinstance(node, ast.Constant) and isinstance(value, str) and " " not in value:  # others are for people
        yield node, repr(f"x{value}")


def mutants(source: bytes, changed: set[int] | None) -> Iterator[tuple[range, str, bytes]]:
    """The lines, the description and the source of each mutant that changes one of these lines, or any."""
    lines = source.splitlines(keepends=True)
    hidden: set[ast.AST] = set()  # types, and f-strings, in which nodes have no positions before Python 3.12
    for node in ast.walk(ast.parse(source)):
        parts = [getattr(node, field, None) for field in ("annotation", "returns", "slice")]
        parts += [node] if isinstance(node, ast.JoinedStr) else []
        hidden.update(each for part in parts if isinstance(part, ast.AST) for each in ast.walk(part))
        conditions = getattr(node, "ifs", [node.test] if isinstance(node, (ast.If, ast.IfExp, ast.While)) else [])
        found = [(each, each, f"not ({ast.unparse(each)})") for each in conditions]
        found += [(node, *each) for each in changes(node) if not isinstance(getattr(node, "ctx", None), ast.Store)]
        for at, member, text in found if node not in hidden else []:
            if changed is not None and changed.isdisjoint(range(member.lineno, member.end_lineno + 1)):
                continue
            start = sum(map(len, lines[: at.lineno - 1])) + at.col_offset
            end = sum(map(len, lines[: at.end_lineno - 1])) + at.end_col_offset
            description = " ".join(f"line {at.lineno}: {source[start:end].decode()}  =>  {text}".split())
            new = text if isinstance(at, ast.stmt) else f"({text})"
            yield range(at.lineno, at.end_lineno + 1), description, source[:start] + new.encode() + source[end:]


def fail(tests: list[str]) -> bool:
    """Whether one of the tests fails, cannot be imported, or takes too long."""

    def run_tests() -> None:
        os.setsid()
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        raise SystemExit(int(pytest.main(["-x", "-q", *tests])))

    process = multiprocessing.get_context("fork").Process(target=run_tests)
    process.start()
    process.join(SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid or 0, 9)
    process.join()
    return process.exitcode != 0


def tests_by_line(data: CoverageData, path: Path) -> dict[int, list[str]]:
    """The tests that run each line, and as line 0 all of the file: the one with the fewest lines of each test file first."""
    by_test: dict[str, set[int]] = defaultdict(set)
    for line, contexts in data.contexts_by_lineno(str(path)).items():
        for context in filter(None, contexts):
            by_test[context.rpartition("|")[0]].update((0, line))
    by_size = sorted(by_test, key=lambda test: len(by_test[test]))
    files = [test.partition("::")[0] for test in by_size]
    found: dict[int, list[str]] = defaultdict(list)
    for _rank, test in sorted((files[:number].count(files[number]), test) for number, test in enumerate(by_size)):
        for line in by_test[test]:
            found[line].append(test)
    return found


def tests_for(lines: range, text: list[str], by_line: dict[int, list[str]]) -> list[str]:
    """The tests for a mutant of these lines."""
    tests = [test for line in lines for test in by_line.get(line, [])]
    if not tests:  # An import runs the line. What uses its name has tests.
        start = next(line for line in text[lines[0] - 1 :: -1] if line[:1].strip(" )]}"))
        name = re.compile(rf"\b{re.findall('(?!def |class )[A-Za-z_]+', start)[0]}\b")
        uses = [line for line, used in enumerate(text, 1) if name.search(used)]
        tests = [test for line in uses for test in by_line.get(line, [])] or by_line[0]
    return list(dict.fromkeys(tests))


def main() -> None:
    exit_on_signals()
    found: dict[str, list[str]] = {name: [] for name in sys.argv[1:]}
    changed = {} if found else changed_lines()
    counts: Counter[str] = Counter()
    with temporary_workspace() as workspace:
        options = ("--numprocesses=0", "-p", "pytest_cov", "--cov-context=test", "--cov-report=")
        places = [f"--cov={workspace.collection / place}" for place in ("plugins", "roles", "extensions")]
        if workspace.start("pytest", "-q", *options, *places, "tests/unit").wait():
            sys.exit("A test fails without a change.")
        os.environ.update(workspace.env)
        os.chdir(workspace.collection)
        data = CoverageData()
        data.read()
        for name in PRELOADED:
            importlib.import_module(name)
        files = {path: path.read_bytes() for path in map(Path, found or changed)}
        by_line = {path: tests_by_line(data, path.resolve()) for path in files}
        todo = [(path, *each) for path in files for each in mutants(files[path], changed.get(str(path)))]
        random.shuffle(todo)  # others each time, if the time does not suffice for all
        for number, (path, lines, description, mutated) in enumerate(todo, 1):
            tests = tests_for(lines, files[path].decode().splitlines(), by_line[path])
            path.write_bytes(mutated)
            survives = not any(fail(tests[stage]) for stage in STAGES if tests[stage])
            path.write_bytes(files[path])
            counts["survived" if survives else "noticed"] += 1
            if survives:
                print(f"{number} of {len(todo)}: {path}, {description}", flush=True)
                found.setdefault(str(path), []).append(description)
            BUILD.mkdir(exist_ok=True)
            report = json.dumps({**counts, "survivors": found}, indent=2, ensure_ascii=False)
            (BUILD / "mutants.json").write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
