# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The code blocks of the guides work: files are written and commands are run in the order of the guide."""

from __future__ import annotations

import pytest
from blocks import Block, blocks_of, guides
from conftest import CHECKOUT
from replacements import EXAMPLE_API_KEY, EXAMPLE_BASE_URL, MESSAGES_GUIDE, NOT_RUN, REPLACED_COMMANDS
from shell import Shell
from transcript import commands_of

from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox


def is_run(block: Block) -> bool:
    return block.guide != MESSAGES_GUIDE and (block.guide, block.first_line) not in NOT_RUN


@pytest.mark.parametrize("guide", [guide for guide in guides() if any(map(is_run, blocks_of(guide)))])
def test_guide(guide: str, shell: Shell, sandbox: Sandbox) -> None:
    def with_account(text: str) -> str:
        """Insert the values of the sandbox's account."""
        return text.replace(EXAMPLE_BASE_URL, sandbox.base_url).replace(EXAMPLE_API_KEY, sandbox.api_key)

    for block in filter(is_run, blocks_of(guide)):
        if block.caption and (CHECKOUT / block.caption).is_file():
            shown = (CHECKOUT / block.caption).read_text(encoding="utf-8").removeprefix("---\n")
            assert block.content == shown, f"{block}: the file {block.caption} is different."
            continue
        if block.caption:
            file = shell.folder / block.caption
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(with_account(block.content), encoding="utf-8")
            continue
        assert block.language == "console", (
            f"{block} is neither a file nor a console block, and is not listed in replacements.py."
        )
        for command in commands_of(block.content):
            text = (
                REPLACED_COMMANDS[command.text][0] if command.text in REPLACED_COMMANDS else with_account(command.text)
            )
            status, printed = shell.run(text)
            print(f"$ {command.text}\n{printed}")  # pytest shows it when a test fails
            if (status != 0) != command.must_fail:
                pytest.fail(f"{block}: {command.text} exited with {status}.", pytrace=False)
            if not command.prints(printed.replace(sandbox.base_url, EXAMPLE_BASE_URL)):
                pytest.fail(f"{block}: {command.text} printed another output.", pytrace=False)


def test_exceptions_exist_in_the_guides() -> None:
    blocks = [block for guide in guides() for block in blocks_of(guide)]
    assert set(NOT_RUN) <= {(block.guide, block.first_line) for block in blocks}
    commands = {
        command.text
        for block in blocks
        if block.language == "console" and is_run(block)
        for command in commands_of(block.content)
    }
    assert set(REPLACED_COMMANDS) <= commands
