# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Console blocks: commands after C($), their further lines after C(>), and what they print.

C(…) stands for any text within a line, and on a line of its own for any lines. Ansible fills its headings with stars up
to the width of the terminal; three of them are enough here. A command whose output shows C(fatal:) has to fail, all
others have to succeed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ANYTHING = "…"


@dataclass
class Command:
    """A command and the lines that it is shown to print; none means that they are not shown."""

    text: str
    output: list[str] = field(default_factory=list)

    @property
    def has_to_fail(self) -> bool:
        return any(line.startswith("fatal: ") for line in self.output)

    def prints(self, printed: str) -> bool:
        """Whether this is what the command is shown to print."""
        return not self.output or bool(_pattern(self.output).fullmatch("".join(f"{line}\n" for line in _tidy(printed))))


def commands_of(content: str) -> list[Command]:
    """The commands of a console block."""
    commands: list[Command] = []
    for line in content.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            commands.append(Command(line[2:]))
        elif not commands:
            raise ValueError(f"a console block begins with a command after '$ ', not with {line!r}")
        elif line.startswith("> ") and not commands[-1].output:
            commands[-1].text += f"\n{line[2:]}"
        else:
            commands[-1].output.append(line)
    for command in commands:
        command.output = _tidy("\n".join(command.output))
    return commands


def _tidy(text: str) -> list[str]:
    """The lines without what does not matter: spaces at their ends, the number of stars, empty lines."""
    lines = (re.sub(r"\*{3,}", "***", line.rstrip()) for line in text.splitlines())
    return [line for line in lines if line]


def _pattern(lines: list[str]) -> re.Pattern[str]:
    expressions = []
    for line in lines:
        within = "[^\n]*".join(map(re.escape, line.split(ANYTHING)))
        expressions.append(r"(?:[^\n]*\n)*" if line.strip() == ANYTHING else f"{within}\n")
    return re.compile("".join(expressions))
