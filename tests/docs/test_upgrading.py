# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The blocks of the page on upgrading: what they remove is refused or gone, and what they add is accepted."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from blocks import Block, blocks_of
from conftest import PROJECTS
from workspace import CHECKOUT

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import API_KEY, Sandbox, running_sandbox

COLLECTION = "clouddb.control."
BLOCKS = [block for block in blocks_of("upgrading") if block.language == "diff"]
# The role takes them from the variables that replace them, with a warning.
ALIASES = {"api_key_rotation_consumers", "api_key_rotation_former_consumers"}


def side(block: Block, sign: str) -> tuple[str, dict[str, Any]]:
    """The task or source before (C(-)) or after (C(+)) the upgrade: the name of the plugin or the role, and its options or variables."""
    lines = [line[1:] for line in block.content.splitlines() if line[0] in (" ", sign)]
    [task] = yaml.safe_load("\n".join(lines))
    name, options = next(iter(task.items()))
    return (options["name"], task["vars"]) if name == "ansible.builtin.include_role" else (name, options)


def is_role(block: Block) -> bool:
    return "include_role" in block.content


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox"), projects=PROJECTS) as running:
        yield running


@pytest.mark.parametrize("block", [block for block in BLOCKS if not is_role(block)], ids=str)
def test_former_values_are_refused(block: Block, sandbox: Sandbox) -> None:
    for sign, is_refused in ("-", True), ("+", False):
        name, options = side(block, sign)
        options = {"base_url": sandbox.base_url, "api_key": API_KEY, **options}
        if name == f"{COLLECTION}operations":
            assert refuses_source(options) == is_refused
            continue
        module = importlib.import_module(
            f"ansible_collections.clouddb.control.plugins.modules.{name.removeprefix(COLLECTION)}"
        )
        outcome = run_main(module, options, check_mode=True)
        assert outcome.failed == is_refused, outcome.result
        assert not is_refused or outcome.failure["kind"] == "invalid_option"


def refuses_source(arguments: dict[str, Any]) -> bool:
    try:
        source_options(arguments)
    except InvalidOption:
        return True
    return False


@pytest.mark.parametrize("block", list(filter(is_role, BLOCKS)), ids=str)
def test_variables_of_roles_exist_now(block: Block) -> None:
    name, variables = side(block, "+")
    specs = CHECKOUT / "roles" / name.removeprefix(COLLECTION) / "meta" / "argument_specs.yml"
    known = yaml.safe_load(specs.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"]
    assert variables.keys() <= known.keys()
    removed = side(block, "-")[1].keys() - variables.keys()
    assert not removed & known.keys()
    if ALIASES & removed:
        defaults = (specs.parents[1] / "defaults" / "main.yml").read_text(encoding="utf-8")
        assert all(alias in defaults for alias in ALIASES)
