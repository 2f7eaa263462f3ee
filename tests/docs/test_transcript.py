# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What console blocks say is read and compared as transcript.py promises."""

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


def test_commands_have_further_lines_and_output() -> None:
    cat, ls = commands_of("$ cat <<END\n> text\n> END\ntext\n\n$ ls\n")
    assert cat == Command("cat <<END\ntext\nEND", ["text"])
    assert ls == Command("ls", [])


def test_a_block_has_to_begin_with_a_command() -> None:
    with pytest.raises(ValueError, match="begins with a command"):
        commands_of("ls\n")


@pytest.mark.parametrize(
    ("shown", "fits"),
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
def test_output_is_compared_with_what_is_shown(shown: str, fits: bool) -> None:
    assert commands_of(f"$ ansible-playbook wait.yml\n{shown}")[0].prints(PLAY) is fits


def test_a_command_has_to_fail_if_its_output_says_so() -> None:
    shown, rescued = commands_of("$ one\n…\nfatal: [localhost]: FAILED! => {…}\n…\n$ two\n…\n[ERROR]: …\n…")
    assert shown.has_to_fail and not rescued.has_to_fail
