# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows guides in one directory and one shell: writes the files that they show, and runs their commands."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from blocks import Block, blocks_of
from replacements import EXAMPLE_API_KEY, EXAMPLE_BASE_URL, NOT_CHECKED, REPLACED_COMMANDS, is_run
from shell import Shell
from transcript import Command, commands_of
from workspace import CHECKOUT


class Reader:
    """Follows guides one after the other. C(base_url) and C(api_key) are those of sandbox.env, once there is one."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.base_url, self.api_key = EXAMPLE_BASE_URL, EXAMPLE_API_KEY
        self.followed: list[str] = []
        self._unfinished: str | None = None
        self._guide_of: dict[str, str] = {}

    def follow(self, guide: str) -> None:
        """Follow a guide. Fails the test at the first block that does not do what the guide says."""
        if self._unfinished:
            pytest.fail(f"The guide {self._unfinished} failed, and the later ones continue it.", pytrace=False)
        self._unfinished = guide
        if self.followed:
            self.shell.run("if [ -f sandbox.env ]; then . ./sandbox.env; fi")
        for block in filter(is_run, blocks_of(guide)):
            if block.caption and (CHECKOUT / block.caption).is_file():
                shown = (CHECKOUT / block.caption).read_text(encoding="utf-8").removeprefix("---\n")
                assert block.content == shown, f"{block}: the file {block.caption} is different."
            elif block.caption:
                self._write(block, block.caption)
            else:
                assert block.language == "console", (
                    f"{block} is neither a file nor a console block, and is not listed in replacements.py."
                )
                for command in commands_of(block.content):
                    self._run(block, command)
        self._unfinished = None
        self.followed.append(guide)

    def _write(self, block: Block, name: str) -> None:
        """Write a file. A guide can change its own files, and show those of other guides."""
        file, content = self.shell.directory / name, self._with_account(block.content)
        if self._guide_of.setdefault(name, block.guide) != block.guide:
            assert file.read_text(encoding="utf-8") == content, (
                f"{block}: {name} differs from the file of that name in {self._guide_of[name]}."
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")

    def _run(self, block: Block, command: Command) -> None:
        text = (
            REPLACED_COMMANDS[command.text][0]
            if command.text in REPLACED_COMMANDS
            else self._with_account(command.text)
        )
        if not (command.must_fail or command.text in NOT_CHECKED):
            self._check(block, text)
        status, printed = self.shell.run(text, typed=self.api_key)
        self._read_account()
        print(f"{block}: $ {command.text}\n{printed}")  # pytest shows it when a test fails
        if (status != 0) != command.must_fail:
            pytest.fail(f"{block}: {command.text} exited with {status}.", pytrace=False)
        if not command.prints(printed):
            pytest.fail(f"{block}: {command.text} printed another output.", pytrace=False)

    def _check(self, block: Block, text: str) -> None:
        """Run the playbook of a command in check mode, before anything that it creates exists."""
        playbook = text.replace("ansible-playbook ", "ansible-playbook --check ", 1)
        status, printed = self.shell.run(playbook, typed=self.api_key) if playbook != text else (0, "")
        if status:
            pytest.fail(f"{block}: {playbook} exited with {status}.\n{printed}", pytrace=False)

    def _read_account(self) -> None:
        """Read the file with which a reader sets the environment."""
        with suppress(FileNotFoundError):
            text = (self.shell.directory / "sandbox.env").read_text(encoding="utf-8")
            (self.base_url,) = re.findall(r"^export CLOUDDB_BASE_URL=(\S+)$", text, re.MULTILINE)
            (self.api_key,) = re.findall(r"^export CLOUDDB_API_KEY=(\S+)$", text, re.MULTILINE)

    def _with_account(self, text: str) -> str:
        """Replace the real account of a guide by that of the sandbox."""
        return text.replace(EXAMPLE_BASE_URL, self.base_url).replace(EXAMPLE_API_KEY, self.api_key)
