# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The style check finds a term to avoid in texts and names, and ignores it in the rest of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.clouddb.control.tests.tools.prose import (
    NAME_CHECKS,
    avoided_names,
    avoided_words,
    findings,
    names,
    prose,
    words_of,
)

MARKDOWN = """\
The answer `answer` of [the service](answer.md)

```yaml
answer: 42
```

"""

RST = """\
.. list-table::

   * - The answer ``answer`` and :ref:`answer <answer>`

.. code-block:: yaml
   :class: message

   answer: 42

A literal block::

   answer: 42

"""

PYTHON = '''\
"""The answer C(answer)."""

answer = f"The {answer}"  # an answer
raise ValueError("No answer")
'''

YAML = """\
- name: Read the answer {{ answer }}
  debug:
    var: lost_answer
"""

JINJA = """\
{# answer #}
<p class="answer">The answer {{ answer }}</p>
"""


@pytest.mark.parametrize(
    "name, text, lines",
    [
        ("guide.md", f"{MARKDOWN}An answer\n", [1, 7]),
        ("guide.rst", f"{RST}An answer\n", [3, 14]),
        ("module.py", PYTHON, [1, 3, 4]),
        ("tasks.yml", YAML, [1]),
        ("page.html.j2", JINJA, [2]),
    ],
)
def test_terms_to_avoid_are_found_in_text_only(tmp_path: Path, name: str, text: str, lines: list[int]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert list(avoided_words(prose(tmp_path / name))) == [(line, "answer ==> response, respond") for line in lines]


@pytest.mark.parametrize("text", ["It looks the object up first", "Look up the id", "The module tries to connect"])
def test_terms_in_another_sense_are_allowed(text: str) -> None:
    assert list(avoided_words(text)) == []


@pytest.mark.parametrize(
    "source",
    [
        "def get_answer(): ...",
        "async def answer(): ...",
        "class LastAnswer: ...",
        "def get(*, answer): ...",
        "def get(*answers): ...",
        "get = lambda answer: 1",
        "ANSWER_SIZE = 1",
        "_answer: int",
        "self.answer = 1",
        "for _number, answer in found: ...",
        "with found as answer: ...",
        "found = [1 for answer in found]",
    ],
)
def test_terms_to_avoid_are_found_in_names(tmp_path: Path, source: str) -> None:
    (tmp_path / "module.py").write_text(f"\n{source}\n", encoding="utf-8")
    [(line, message)] = avoided_names(names(tmp_path / "module.py"))
    assert (line, message.split()[0].rstrip("s")) == (2, "answer")


def test_the_name_of_a_file_is_checked(tmp_path: Path) -> None:
    (tmp_path / "test_whole_file.py").touch()
    assert list(avoided_names(names(tmp_path / "test_whole_file.py"))) == [(1, "whole ==> complete, all")]


def test_names_of_others_are_not_checked(tmp_path: Path) -> None:
    source = "from http import answer\nfound = answer.told(stage=answer.BAD)['answer']\n"
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    assert list(avoided_names(names(tmp_path / "module.py"))) == []


@pytest.mark.parametrize(
    "name, words",
    [
        ("_last_poll_2", "last poll 2"),
        ("MAX_SIZE", "max size"),
        ("TestHTMLPage", "test html page"),
        ("__init__", "init"),
        ("do_GET", "do get"),
    ],
)
def test_names_are_split_into_words(name: str, words: str) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    "name",
    [
        "lookup",
        "look_up",
        "looks_the_object_up",
        "tries_to_connect",
        "gateway",
        "badge",
        "BAD_GATEWAY",
        "HTTPSTransport",
    ],
)
def test_names_with_a_term_in_another_sense_are_allowed(name: str) -> None:
    assert list(avoided_names(words_of(name))) == []


@pytest.mark.parametrize(
    "file, name, number",
    [
        ("tests/unit/sandbox/test_faults.py", "fault", 0),
        ("roles/sandbox/files/clouddb_sandbox/faults.py", "fault", 0),
        ("plugins/module_utils/_errors.py", "fault", 1),
        ("tests/awx/jobs.py", "answers", 0),
        ("tests/unit/conftest.py", "answers", 1),
        ("plugins/module_utils/_errors.py", "honoured", 1),
    ],
)
def test_a_term_is_allowed_in_some_files(file: str, name: str, number: int) -> None:
    pytest.importorskip("codespell_lib")
    assert len(list(findings({file: name}, NAME_CHECKS))) == number
