# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of the recipes are in the public service's document, those that the sandbox lacks as well."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from contract import Contract
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))

from blocks import blocks_of

MODULE = "clouddb.control.api_request"
# An id of any resource
ID = "00000000-0000-4000-8000-000000000000"
VALUE = re.compile(r"\{\{.*?\}\}|\{\w+\}")


def tasks_of(guide: str) -> list[dict[str, Any]]:
    """The tasks of a guide that send a request."""
    entries = [
        entry for block in blocks_of(guide) if block.language == "yaml" for entry in yaml.safe_load(block.content)
    ]
    tasks = [task for entry in entries for task in entry.get("tasks", [entry])]
    return [task for task in tasks if MODULE in task]


@pytest.mark.parametrize("task", tasks_of("cookbook"), ids=lambda task: task["name"])
def test_request_is_in_the_document(contract: Contract, task: dict[str, Any]) -> None:
    options = task[MODULE]
    path = options["path"].replace("{{ project }}", "projects/id").replace("{{ organization }}", "organizations/id")
    builder = EnvironBuilder(
        path="/" + VALUE.sub(ID, path),
        method=options.get("method", "GET"),
        query_string={name: VALUE.sub(ID, value) for name, value in options.get("query", {}).items()},
        json=yaml.safe_load(VALUE.sub("colleague@example.com", yaml.safe_dump(options.get("body")))),
        headers={"Authorization": "Bearer key"},
    )
    assert contract.request_errors(Request(builder.get_environ())) == []
