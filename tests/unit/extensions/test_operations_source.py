# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source as ansible-rulebook loads it, its documentation, and the sample rulebook with its playbook."""

from __future__ import annotations

import asyncio
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
import yaml
from jinja2 import Environment, StrictUndefined

from ansible_collections.clouddb.control.extensions.eda.plugins.event_source import operations
from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError, InvalidOption
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import ARGUMENTS

COLLECTION = Path(__file__).parents[3]
SOURCE = COLLECTION / "extensions" / "eda" / "plugins" / "event_source" / "operations.py"


def test_source_finds_the_collection_without_ansible(tmp_path: Path) -> None:
    namespace = tmp_path / "ansible_collections" / "clouddb"
    namespace.mkdir(parents=True)
    (namespace / "control").symlink_to(COLLECTION)
    path = namespace / "control" / SOURCE.relative_to(COLLECTION)
    code = f"import runpy; print(runpy.run_path({str(path)!r})['main'].__name__)"
    # Neither this test's search path nor Ansible's importer is used there.
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/", env={})
    assert (ran.stdout, ran.stderr) == ("main\n", "")


def test_the_directory_of_the_collection_is_added_to_the_search_path_once(monkeypatch: pytest.MonkeyPatch) -> None:
    root = next(str(folder.parent) for folder in SOURCE.parents if folder.name == "ansible_collections")
    monkeypatch.setattr(sys, "path", ["elsewhere"])
    # An importer of another test may take the path for a directory.
    monkeypatch.setattr(sys, "path_hooks", [])
    monkeypatch.delitem(sys.path_importer_cache, str(SOURCE), raising=False)
    for _time in range(2):
        runpy.run_path(str(SOURCE))
        assert sys.path == ["elsewhere", root]


def test_main_checks_its_arguments() -> None:
    with pytest.raises(
        InvalidOption, match="^base_url, api_key: no value is given.* CLOUDDB_BASE_URL and CLOUDDB_API_KEY"
    ):
        asyncio.run(operations.main(asyncio.Queue(), {}))


def test_main_follows_operations_until_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = Mock(return_value=Mock(run=AsyncMock(side_effect=asyncio.CancelledError)))
    monkeypatch.setattr(operations, "Follower", follower)
    queue = asyncio.Queue[dict[str, Any]]()
    args = {"base_url": "https://control.example.com/api/v2", "api_key": "the-secret", "interval": 7}
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(operations.main(queue, args))
    [(options, *queues)] = [call.args for call in follower.call_args_list]
    assert (options.connection.api_key, options.interval) == ("the-secret", 7)
    assert queues == [queue]


def test_main_names_the_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "REQUESTS_IMPORT_ERROR", "Traceback")
    with pytest.raises(ClouddbError, match=f"requests is missing. Install it for {re.escape(sys.executable)}"):
        asyncio.run(operations.main(asyncio.Queue(), {}))


def test_documentation_matches_the_arguments() -> None:
    options = yaml.safe_load(operations.DOCUMENTATION)["options"]
    assert list(options) == list(ARGUMENTS)
    for name, argument in ARGUMENTS.items():
        assert options[name].get("default") == argument.get("default"), name
        assert options[name]["type"] == argument["type"], name
        assert options[name].get("required", False) == (name in ("base_url", "api_key")), name


def test_examples_use_documented_arguments() -> None:
    examples = yaml.safe_load(operations.EXAMPLES)
    assert examples
    for example in examples:
        assert set(example["clouddb.control.operations"] or {}) <= set(ARGUMENTS)


def test_rulebook_uses_only_fields_that_every_event_has() -> None:
    rulebook = (COLLECTION / "extensions" / "eda" / "rulebooks" / "operations.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"event\.clouddb\.([\w.]+)", rulebook))
    assert used == {"operation.id", "operation.status", "project.id", "seconds"}


def test_report_needs_only_the_fields_that_every_operation_has() -> None:
    (play,) = yaml.safe_load((COLLECTION / "playbooks" / "operation_report.yml").read_text(encoding="utf-8"))
    (content,) = [task["ansible.builtin.copy"]["content"] for task in play["tasks"] if "ansible.builtin.copy" in task]
    report = Environment(undefined=StrictUndefined, autoescape=False).from_string(content)
    text = report.render(
        project_id="p",
        operation_id="o",
        found={"operations": [{"id": "o", "status": "failed"}]},
        failures={"summary": {"total": 0, "by_action": {}}},
    )
    assert "unknown is failed" in text
    assert "branch none, compute none" in text
