# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parses console blocks: commands after C($), their continuation lines after C(>), and their output.

C(…) matches any text within a line, and on its own any number of lines. Ansible fills its headings with asterisks up to
the width of the terminal; here three are enough. A command whose output shows C(fatal:) must fail, all others must
succeed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ANYTHING = "…"


@dataclass
class Command:
    """A command and the output that the guide shows; no lines match any output."""

    text: str
    output: list[str] = field(default_factory=list)

    @property
    def must_fail(self) -> bool:
        return any(line.startswith("fatal: ") for line in self.output)

    def prints(self, printed: str) -> bool:
        return not self.output or bool(
            _pattern(self.output).fullmatch("".join(f"{line}\n" for line in _normalized(printed)))
        )


def commands_of(content: str) -> list[Command]:
    commands: list[Command] = []
    for line in content.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            commands.append(Command(line[2:]))
        elif not commands:
            raise ValueError(f"A console block must begin with a command after '$ ', not with {line!r}.")
        elif line.startswith("> ") and not commands[-1].output:
            commands[-1].text += f"\n{line[2:]}"
        else:
            commands[-1].output.append(line)
    for command in commands:
        command.output = _normalized("\n".join(command.output))
    return commands


def _normalized(text: str) -> list[str]:
    """The lines without trailing spaces, without empty lines, and with three asterisks."""
    lines = (re.sub(r"\*{3,}", "***", line.rstrip()) for line in text.splitlines())
    return [line for line in lines if line]


def _pattern(lines: list[str]) -> re.Pattern[str]:
    expressions = []
    for line in lines:
        within = "[^\n]*".join(map(re.escape, line.split(ANYTHING)))
        expressions.append(r"(?:[^\n]*\n)*" if line.strip() == ANYTHING else f"{within}\n")
    return re.compile("".join(expressions))
