# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages consist of sentences: what happened, then what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption, sentence

ROOT = Path(__file__).parents[3]
FILES = [
    *(ROOT / "plugins").rglob("*.py"),
    *(ROOT / "extensions").rglob("*.py"),
    ROOT / "roles/sandbox/files/background.py",
]
# The separator of a list, the items of which contain commas.
SEPARATOR = "; "


def texts(path: Path) -> Iterator[str]:
    """The strings in the code of a file, without docstrings and without the documentation of plugins."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, (ast.Expr, ast.Assign))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


@pytest.mark.parametrize("path", FILES)
def test_no_message_joins_two_sentences_by_a_semicolon(path: Path) -> None:
    assert [text for text in texts(path) if SEPARATOR in text and text != SEPARATOR] == []


@pytest.mark.parametrize("text", ["It failed", "It failed.", "It failed..."])
def test_a_sentence_ends_with_one_full_stop(text: str) -> None:
    assert sentence(text) == "It failed."


def test_a_question_gets_no_full_stop() -> None:
    assert sentence("Is it there?") == "Is it there?"


@pytest.mark.parametrize("problem", ["must be 1 or more", "must be 1 or more."])
def test_an_invalid_option_is_a_complete_sentence(problem: str) -> None:
    assert str(InvalidOption("workers", problem)) == "workers: must be 1 or more."
