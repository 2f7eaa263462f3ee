# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of a rotation that must have the same values on all hosts."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._keys.evidence import RotationRefused
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.keys.rotations import (
    Keys,
    evidence,
    refusal,
    run,
)


def of_runs(keys: Keys, *runs: str, step: str = "inspect") -> list[object]:
    account, ids = keys
    return [evidence(account, f"web{number}", ids[-1], step=step, run=name) for number, name in enumerate(runs, 1)]


def test_variables_that_differ_are_refused(keys: Keys) -> None:
    found = of_runs(
        keys, 'run {"name": "a", "keep": 1}', 'run {"name": "b", "keep": 1}', 'run {"name": "a", "keep": 1}'
    )
    error = refusal(keys[0], "plan", *found, run='run {"name": "a", "keep": 1}')
    assert str(error) == (
        "All hosts of a run get the same key, so the variables of the role must have the same values on all of them. No key "
        "was created or revoked. Run the role once for each group of hosts, in a separate play with a name of its own for "
        'the keys. name is "a" on web1 and web3, "b" on web2.'
    )
    assert error.details == {"consumers": ["web1", "web2", "web3"]}


def test_variables_that_differ_are_refused_in_check_mode(keys: Keys) -> None:
    found = of_runs(keys, 'run {"keep": 1} (check mode)', 'run {"keep": [2]} (check mode)')
    with pytest.raises(RotationRefused, match=r"keep is 1 on web1, \[2\] on web2\.$"):
        run(keys[0], "plan", *found, run='run {"keep": 1}', check_mode=True)


@pytest.mark.parametrize("name", ["run", 'run {"keep": 1}', "run {", "run [1]"])
def test_same_variables(keys: Keys, name: str) -> None:
    assert run(keys[0], "plan", *of_runs(keys, name, name), run=name)["reason"] == ""


def test_variables_of_another_run_or_step_are_ignored(keys: Keys) -> None:
    account, ids = keys
    name = 'run {"keep": 1}'
    others = [
        evidence(account, "web3", ids[-1], step="inspect", run='earlier {"keep": 2}'),
        evidence(account, "web4", ids[-1], step="commit", run='run {"keep": 2}'),
    ]
    assert run(account, "plan", *of_runs(keys, name, name), *others, run=name)["reason"] == ""
