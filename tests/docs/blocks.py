# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the code blocks of a guide."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml
from antsibull_docutils.rst_code_finder import CodeBlockDirective, find_code_blocks
from docutils import nodes

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDES = DOCS / "docsite" / "rst"
FRONT_PAGE = "index"


@dataclass(frozen=True)
class Block:
    """A code block; C(caption) is the name of the file that it shows."""

    guide: str
    line: int
    language: str
    caption: str | None
    content: str

    def __str__(self) -> str:
        return f"{self.guide}.rst:{self.line}"

    @property
    def beginning(self) -> str:
        return f"{self.guide}: {self.content.splitlines()[0]}"


class CaptionedBlock(CodeBlockDirective):
    def run(self) -> list[nodes.literal_block]:
        found: list[nodes.literal_block] = super().run()
        found[0]["antsibull-other-caption"] = self.options.get("caption")
        return found


def guides() -> list[str]:
    """The names of all guides in the order of the menu, which begins with the front page."""
    listed = yaml.safe_load((DOCS / "docsite" / "extra-docs.yml").read_text(encoding="utf-8"))["sections"]
    return [FRONT_PAGE, *(name for section in listed for name in section["toctree"])]


def blocks_of(guide: str) -> list[Block]:
    """The code blocks of a guide in their order; those after C(::) have no language."""
    path = (DOCS / "site" if guide == FRONT_PAGE else GUIDES) / f"{guide}.rst"
    plain: list[Block] = []

    def add_plain(line: int | str, _column: int, content: str, _unknown: bool) -> None:
        plain.append(Block(guide, int(line) if str(line).isdigit() else 0, "", None, content))

    directives = dict.fromkeys(("code", "code-block", "sourcecode"), CaptionedBlock)
    found = find_code_blocks(
        path.read_text(encoding="utf-8"),
        path=path,
        extra_directives=directives,
        warn_unknown_block_w_unknown_info=add_plain,
    )
    blocks = [
        Block(guide, each.row_offset + 1, each.language or "", each.attributes["antsibull-other-caption"], each.content)
        for each in found
    ]
    return sorted(blocks + plain, key=lambda block: block.line)
