# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No rotation, whatever happens, locks a host out, and the next one repairs what it left."""

from __future__ import annotations

from typing import Any

from account import Account
from cells import Cell
from invariants import unrepaired, violations
from scenarios import SCENARIOS

GARBAGE = "not-a-key"


def test_cell(cell: Cell, account: Account) -> None:
    [scenario] = [scenario for scenario in SCENARIOS if scenario.name == cell.scenario]
    before = account.restore(scenario.start, cell.tasks)
    event: dict[str, Any] = {"step": list(cell.step), "what": cell.event, "host": cell.host}
    if cell.event.startswith("edited"):
        contents = {"garbage": GARBAGE, "older secret": account.older_secret or GARBAGE, "empty": "", "removed": None}
        content = contents[cell.event.removeprefix("edited: ")]
        path = account.files_folder / "web2.key"
        event |= {"what": "edited", "file": path.name, "path": str(path), "content": content}

    # Verbose output is the most likely to show a secret.
    verbose = ["-vvv"] if len(cell.step[0] + cell.event) % 4 == 0 else []
    run = account.run(scenario, *verbose, tasks=cell.tasks, event=event)
    is_rescued = "rescue" in scenario.block
    found = violations(account, run, before, event, scenario.hosts, may_succeed=is_rescued, is_check=scenario.is_check)
    repair = account.run(tasks=cell.tasks, api_key_rotation_max_age="30d")
    found += unrepaired(account, repair)

    assert not found, "\n".join([*found, run.end(), "--- the next run", repair.end()])
