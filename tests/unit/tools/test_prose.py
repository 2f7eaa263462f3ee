# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The style check finds a term to avoid in text, and ignores it in code."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.clouddb.control.tests.tools.prose import avoided_words, prose

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
    ("name", "text", "lines"),
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
