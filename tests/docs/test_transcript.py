# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Console blocks are parsed and compared as described in transcript.py."""

from __future__ import annotations

import pytest
from transcript import Command, commands_of

PLAY = """\

TASK [Wait] *********************************
clouddb: shop running → finished (3 s)
ok: [localhost]

PLAY RECAP **********************************
localhost : ok=1
"""


def test_commands_with_several_lines_and_output() -> None:
    cat, ls = commands_of("$ cat <<END\n> text\n> END\ntext\n\n$ ls\n")
    assert cat == Command("cat <<END\ntext\nEND", ["text"])
    assert ls == Command("ls", [])


def test_block_without_command_is_rejected() -> None:
    with pytest.raises(ValueError, match="must begin with a command"):
        commands_of("ls\n")


@pytest.mark.parametrize(
    ("shown", "matches"),
    [
        ("", True),
        ("…\nTASK [Wait] ***\n…\nok: [localhost]\n…", True),
        ("…\nclouddb: … running → finished (… s)\n…", True),
        ("TASK [Wait] ***\n…\nlocalhost : ok=1", True),
        ("TASK [Wait] ***", False),
        ("…\nok: [otherhost]\n…", False),
        ("…\nclouddb: … failed (… s)\n…", False),
        ("…\nok: [localhost]\nclouddb: …", False),
    ],
)
def test_output_is_compared_with_the_shown_lines(shown: str, matches: bool) -> None:
    assert commands_of(f"$ ansible-playbook wait.yml\n{shown}")[0].prints(PLAY) is matches


def test_command_must_fail_if_its_output_shows_fatal() -> None:
    shown, rescued = commands_of("$ one\n…\nfatal: [localhost]: FAILED! => {…}\n…\n$ two\n…\n[ERROR]: …\n…")
    assert shown.must_fail and not rescued.must_fail
