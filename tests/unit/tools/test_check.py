# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The integration jobs and make test-playbooks have every target once."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]


def test_every_integration_target_is_in_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TESTS / "tools"))
    check = importlib.import_module("check")
    jobs = list(check.split(["sanity", "integration"], []))
    targets = [path.parents[1].name for path in (TESTS / "integration" / "targets").glob("*/tasks/main.yml")]
    scripts = [path.parent.name for path in (TESTS / "integration" / "targets").glob("*/runme.sh")]
    assert set(check.PLAYBOOKS) < {*targets, *scripts}
    assert jobs[0] == ("sanity", "sanity", [])
    assert {suite for _name, suite, _arguments in jobs[1:]} == {"integration"}
    assert sorted(name for _name, _suite, names in jobs[1:] for name in names) == sorted(
        {*targets, *scripts} - {"setup_sandbox", *check.PLAYBOOKS}
    )
