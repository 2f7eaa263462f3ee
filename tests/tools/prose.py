# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks spelling and style of the documentation, the messages, the comments and the names: ``prose.py [FILE...]``.

Code is masked first. codespell finds misspellings and British spellings, proselint finds poor style, and WORDS are terms
that this collection replaces by those of HTTP, Ansible and the service. In Python files, the names that are defined are
split into words and checked, too; NAMES are words that suit a text, but say too little in a name. Vale is not used: its packages for PyPI and npm
download the program from GitHub.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

FILES = (
    *("*.md", "*.rst", ".github/**/*.md", "changelogs/fragments/*.yml", "docs/*/*.rst", "docs/docsite/rst/*.rst"),
    *("examples/**/*.md", "examples/**/*.yml", "extensions/**/*.md", "extensions/**/*.py", "extensions/**/*.yml"),
    *("playbooks/*.yml", "plugins/**/*.py", "roles/*/README.md", "roles/*/*/*.yml", "roles/*/*/*.j2", "roles/**/*.py"),
    *("docs/site/*.py", "noxfile.py", "tests/**/*.py", "tests/integration/**/*.yml"),
)

# Each term to avoid, as a regular expression, and the term to use.
WORDS = {
    r"look(s|ed|ing)?(?! (\S+ ){0,3}up)": "poll, fetch, read",
    r"answer(s|ed|ing)?": "response, respond",
    r"faults?": "error, transient error",
    r"tells? (them )?apart|told": "classify, report",
    r"whole (lists?|responses?|results?|pages?)|(is|are|was|were) whole": "complete, entire",
    r"ended (well|badly)|(good|bad) end": "succeeded, failed",
    r"still going": "in progress, unfinished",
    r"(hand|hands|handed|handing) over": "distribute, deploy, pass",
    r"(take|takes|taken|took|taking) back": "roll back, revoke",
    r"(take|takes|took|taking) stock": "list",
    r"pauses? between": "poll interval",
    r"tries(?! to)": "attempts",
    r"(make|makes|made|making) sure( of)?": "check, verify",
    r"(gets|get|got) on(?! with)": "progress",
    r"left over|what is left|leftovers?": "remaining, orphaned",
    r"(ride|rides|ridden|rode) out": "retry until the deadline",
    r"spellings? of": "encoding",
    r"so many": "a number",
    r"(sees|see|seen) to (it|that)": "say what is done",
    r"for good": "permanently",
}

# The same for the words of a name.
NAMES = {
    r"whole": "complete, all",
    r"good|fine": "valid",
    r"bad(?! (gateway|request))|odd|weird|wrong": "invalid, malformed, special",
    r"taken|took": "consumed, used, delivered",
    r"grown": "longer, larger",
    r"believed|surely": "confirmed",
    r"trouble": "errors, outages",
    r"happen(s|ed)?": "the condition itself",
    r"ways?": "scenario, mode",
    r"promises?": "guarantee, invariant",
    r"victims?": "host",
    r"stand ins?": "replacement",
    r"stuff": "item, object",
    r"beside|besides": "further",
    r"leftovers?|stages?": "remaining, workspace",
}

CODESPELL = ("--builtin=clear,rare,en-GB_to_en-US", "--ignore-words-list=cancelled,cancelling")

# Files and the terms that are right there.
INJECTED = "faults? "
SURVEY = "answers "
ALLOWED = {
    "roles/sandbox/*": INJECTED,
    "docs/docsite/rst/testing_playbooks.rst": INJECTED,
    "tests/*": INJECTED,
    "docs/docsite/rst/job_templates.rst": SURVEY,
    "tests/awx/*": SURVEY,
    # Misspelled on purpose.
    "tests/integration/targets/operation_info/tasks/main.yml": "faild ",
    "tests/unit/plugins/plugin_utils/events/test_options.py": "intervall ",
    # The terms themselves.
    "tests/*/*prose.py": "",
}

# proselint's checks that do not suit technical documentation, and their reason.
UNSUITABLE = {
    "misc.composition": "what has not succeeded may be in progress",
    "typography.punctuation": "?! is a part of regular expressions",
    "typography.symbols": "YAML and Python need straight quotes",
    "typography.diacritical_marks": "to resume is not a résumé",
    "dates_times.dates": "a range of measurements is not a range of dates",
}

# What is not text: code, addresses and names.
BLOCK = r"\n(?:(?P=indent) +\S.*\n|[ \t]*\n)*"
MASKS = {
    ".md": (r"\A---\n[\s\S]*?^---$", r"^ *```[\s\S]*?^ *```", r"<!--[\s\S]*?-->", r"(?<=\])\([^)]*\)"),
    ".rst": (
        rf"^(?P<indent> *)\.\. (?:code-block|figure|image|raw|toctree)::.*{BLOCK}",
        rf"^(?P<indent> *)(?!\.\. ).*::{BLOCK}",
        r"^ *\.\. _.*",
        r"``.+?``",
        r":[\w.:-]+:`[^`]*`",
        r"`[^`]*<[^>]*>`_+",
    ),
    ".py": (r"\{[^{}]*\}", r"\b[A-Z]+\([^)]*\)"),
    ".yml": (r"\{\{.*?\}\}", r"\b[A-Z]+\([^)]*\)"),
    ".j2": (r"\{\{.*?\}\}", r"\{%.*?%\}", r"\{#.*?#\}", r"<[^>]*>"),
}
EVERYWHERE = (r"https?://\S+", r"``.+?``", r"`[^`\n]+`", r"[\w.-]*[\w-][_/.=][\w/.=-]*\w")


class Finding(NamedTuple):
    """A place in a file, and what is wrong there."""

    file: str
    line: int
    message: str


def masked(text: str, pattern: str) -> str:
    """The text with what matches replaced, with its line breaks kept."""
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", "§", match.group()), text, flags=re.MULTILINE)


def strings_and_comments(source: str) -> str:
    """Python code with only its texts, each on its line: comments, and strings that are not names."""
    lines = [""] * (source.count("\n") + 2)
    for kind, text, first_line in tokens(source):
        if kind == "COMMENT" or (kind == "STRING" and " " in text):
            for number, line in enumerate(text.splitlines(), first_line - 1):
                lines[number] += line + " "
    return "\n".join(lines)


def tokens(source: str) -> Iterator[tuple[str, str, int]]:
    """Type, text and first line of each token. An f-string is one token, as it is before Python 3.12."""
    lines = source.splitlines(keepends=True)
    starts: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":
            starts.append(token.start)
        elif kind == "FSTRING_END":
            (row, column), (end_row, end_column) = starts.pop(), token.end
            text = lines[row - 1 : end_row]
            text[-1] = text[-1][:end_column]
            text[0] = text[0][column:]
            if not starts:
                yield "STRING", "".join(text), row
        elif not starts:
            yield kind, token.string, token.start[0]


def prose(path: Path) -> str:
    """The text of a file without its code, with the file's line numbers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = strings_and_comments(text)
    for pattern in (*MASKS[path.suffix], *EVERYWHERE):
        text = masked(text, pattern)
    return text


def names(path: Path) -> str:
    """The names that a Python file defines, and its own, split into words; each on its line, C( § ) between them."""
    source = path.read_text(encoding="utf-8")
    lines: list[list[str]] = [[] for _line in range(source.count("\n") + 2)]
    lines[0].append(path.stem)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            lines[node.lineno - 1].append(node.name)
        elif isinstance(node, ast.arg):
            lines[node.lineno - 1].append(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            lines[node.lineno - 1].append(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            lines[node.lineno - 1].append(node.attr)
    return "\n".join(" § ".join(map(words_of, line)) for line in lines)


def words_of(name: str) -> str:
    """The words of a name in snake_case, CamelCase or UPPER_CASE, in lower case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+", " ", name).strip().lower()


def misspellings(text: str) -> Iterator[tuple[int, str]]:
    """What codespell finds: line and message."""
    command = (sys.executable, "-m", "codespell_lib", "--stdin-single-line", *CODESPELL, "-")
    output = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=False).stdout
    for line in output.splitlines():
        number, _separator, message = line.partition(": ")
        yield int(number), message


def poor_style(text: str) -> Iterator[tuple[int, str]]:
    """What proselint finds: line and message."""
    # The unit tests of this file run without proselint.
    from proselint.checks import __register__
    from proselint.config import DEFAULT, Config
    from proselint.registry import CheckRegistry
    from proselint.tools import LintFile

    if not CheckRegistry().checks:
        CheckRegistry().register_many(__register__)
    checks = {**dict.fromkeys(UNSUITABLE, False), **DEFAULT["checks"]}
    # proselint skips what is in quotes, and finds repetitions in numbers and across cells and paragraphs.
    separated = re.sub(
        r"""\B["'\u201c\u201d\u2018\u2019]|["'\u201c\u201d\u2018\u2019]\B|[|\d]|\n(?=\s*\n)""", "§", text
    )
    for result in LintFile("text", separated).lint(Config(max_errors=1000, checks=checks)):
        # The text that proselint checks has a line break before it.
        name, message, (start, end), _replacements = result.check_result
        if not re.match(r"\w", text[end - 1 :]):  # for ever, but not for every
            yield text.count("\n", 0, start - 1) + 1, " ".join(f"{name}: {message}".split())


def avoided_words(text: str) -> Iterator[tuple[int, str]]:
    """Where a term of WORDS is used: line and message."""
    return used_terms(text, WORDS)


def used_terms(text: str, terms: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Where a term is used: line and message."""
    for pattern, better in terms.items():
        for match in re.finditer(rf"\b(?:{pattern})\b".replace(" ", r"\s+"), text, re.IGNORECASE):
            found = " ".join(match.group().split())
            yield text.count("\n", 0, match.start()) + 1, f"{found} ==> {better}"


def avoided_names(text: str) -> Iterator[tuple[int, str]]:
    """Where a term of WORDS or NAMES is used in a name: line and message."""
    return used_terms(text, {**WORDS, **NAMES})


def is_allowed(finding: Finding) -> bool:
    """Whether the term is right in this file."""
    return any(
        fnmatch(finding.file, files) and re.match(term, finding.message, re.IGNORECASE)
        for files, term in ALLOWED.items()
    )


def findings(texts: dict[str, str], checks: Iterable[Check]) -> Iterator[Finding]:
    """What these checks find in these texts, by file."""
    # All texts at once: codespell reads its dictionaries whenever it starts.
    lines = [(file, number) for file, text in texts.items() for number in range(1, text.count("\n") + 2)]
    together = "\n".join(texts.values())
    for check in checks:
        for line, message in check(together):
            finding = Finding(*lines[line - 1], message)
            if not is_allowed(finding):
                yield finding


# Each check, and a text that it must complain about.
Check = Callable[[str], Iterator[tuple[int, str]]]
CHECKS: dict[Check, str] = {
    misspellings: "A seperate file",
    poor_style: "A very unique file",
    avoided_words: "The answer of the service",
}
NAME_CHECKS: dict[Check, str] = {misspellings: words_of("seperateFile"), avoided_names: words_of("test_whole_list")}


def main() -> int:
    """Check the files named on the command line, or all; print the findings."""
    for check, mistake in (*CHECKS.items(), *NAME_CHECKS.items()):
        if not any(check(mistake)):
            sys.exit(f"{check.__name__} does not find the mistake in {mistake!r}.")
    paths = [Path(name) for name in sys.argv[1:]] or sorted({path for name in FILES for path in Path().glob(name)})
    texts = {str(path): prose(path) for path in paths}
    identifiers = {str(path): names(path) for path in paths if path.suffix == ".py"}
    found = sorted({*findings(texts, CHECKS), *findings(identifiers, NAME_CHECKS)})
    for finding in found:
        print(f"{finding.file}:{finding.line}: {finding.message}")
    print(f"{len(texts)} files checked, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
