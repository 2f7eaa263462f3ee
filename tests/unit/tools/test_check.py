# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The integration jobs and the suite playbooks have every target once."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]


def test_every_integration_target_is_in_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TESTS / "tools"))
    check = importlib.import_module("check")
    jobs = list(check.jobs_of("integration", []))
    targets = [path.parents[1].name for path in (TESTS / "integration" / "targets").glob("*/tasks/main.yml")]
    scripts = [path.parent.name for path in (TESTS / "integration" / "targets").glob("*/runme.sh")]
    assert set(check.PLAYBOOKS) < {*targets, *scripts}
    assert {job.suite for job in jobs} == {"integration"}
    assert sorted(name for job in jobs for name in job.arguments) == sorted(
        {*targets, *scripts} - {"setup_sandbox", *check.PLAYBOOKS}
    )
