# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of the roles set each option with which module_defaults of the play could change what they do, or replace these defaults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.basic import FILE_COMMON_ARGUMENTS

from ansible_collections.clouddb.control.plugins.module_utils._http.connection import CONNECTION_OPTIONS
from ansible_collections.clouddb.control.tests.unit.test_consistency import module_arguments

ROOT = Path(__file__).parents[2]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
# Of the modules of ansible-core, those that can make a task do something else, or nothing.
REQUIRED = {
    "ansible.builtin.command": {"creates", "removes"},
    "ansible.builtin.copy": {"force"},
    "ansible.builtin.file": {"state"},
    "ansible.builtin.pause": {"echo", "minutes", "prompt"},
    "ansible.builtin.pip": {"state"},
    "ansible.builtin.script": {"creates", "removes"},
    "ansible.builtin.setup": {"filter"},
    "ansible.builtin.template": {"force"},
}
# Connection options come from module_defaults. The others change how lists are requested, not what is listed.
INHERITED = {*CONNECTION_OPTIONS, "page_size", "workers"}
# Without a file that it writes, these options of api_key have no effect.
FILE_OPTIONS = {"selevel", "serole", "setype", "seuser"}


def tasks_in(blocks: list[dict[str, Any]]) -> Iterator[tuple[str, str, set[str]]]:
    """The name, the module and the options of each task."""
    for task in blocks:
        for section in ("block", "rescue", "always"):
            yield from tasks_in(task.get(section, []))
        for module, options in task.items():
            if "." in module:
                yield task["name"], module, set(options if isinstance(options, dict) else [])


def required_options(module: str) -> set[str]:
    """The options that each task with this module has to set."""
    if not module.startswith("clouddb.control."):
        return REQUIRED.get(module, set())
    arguments = module_arguments(module.rpartition(".")[2])
    file_options = FILE_COMMON_ARGUMENTS.keys() - FILE_OPTIONS if arguments.get("add_file_common_args") else set()
    return {*arguments["argument_spec"], *file_options} - INHERITED


@pytest.mark.parametrize("role", ROLES)
def test_tasks_set_what_module_defaults_could_change(role: str) -> None:
    files = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / "roles" / role / "tasks").glob("*.yml")}
    # The defaults of a block replace those of the play for the same module. All task files are included in these blocks.
    replaced = {module for blocks in files.values() for block in blocks for module in block.get("module_defaults", [])}
    inherited = [
        f"{file}: {name}: {option}"
        for file, blocks in files.items()
        for name, module, options in tasks_in(blocks)
        for option in ([] if module in replaced else sorted(required_options(module) - options))
    ]
    assert inherited == []
