# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of a rotation that must have the same values on all hosts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._rotation.evidence import Evidence
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.rotation.rotations import (
    Keys,
    evidence,
    refusal,
    run,
)


def found_with(keys: Keys, *variables: dict[str, Any], **fields: Any) -> list[Evidence]:
    account, ids = keys
    return [
        evidence(account, f"web{number}", ids[-1], **{"step": "inspect", "variables": values, **fields})
        for number, values in enumerate(variables, 1)
    ]


def test_variables_that_differ_are_refused(keys: Keys) -> None:
    found = found_with(keys, {"name": "a", "keep": 1}, {"name": "b", "keep": 1}, {"name": "a", "keep": 1})
    error = refusal(keys[0], "plan", *found, variables={"name": "a", "keep": 1})
    assert str(error) == (
        "All hosts of a run get the same key, so the variables of the role must have the same values on all of them. No key "
        "was created or revoked. Run the role once for each group of hosts, in a separate play with a name of its own for "
        'the keys. name is "a" on web1 and web3, "b" on web2.'
    )
    assert error.details == {"consumers": ["web1", "web2", "web3"]}


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        ({"keep": 1}, {"keep": 2}, "keep is 1 in this task, 2 on web1 and web2."),
        ({"keep": 1}, {}, "keep is 1 in this task, null on web1 and web2."),
        ({}, {"keep": 1}, "keep is null in this task, 1 on web1 and web2."),
    ],
)
def test_the_variables_of_the_task_count_as_well(keys: Keys, own: Any, others: Any, expected: str) -> None:
    error = refusal(keys[0], "plan", *found_with(keys, others, others), variables=own)
    assert str(error).endswith(expected)


def test_variables_of_another_run_or_step_are_ignored(keys: Keys) -> None:
    account, ids = keys
    others = [
        evidence(account, "web3", ids[-1], step="inspect", run="earlier", variables={"keep": 2}),
        evidence(account, "web4", ids[-1], step="commit", variables={"keep": 2}),
    ]
    found = found_with(keys, {"keep": 1}, {"keep": 1})
    assert run(account, "plan", *found, *others, variables={"keep": 1})["reason"] == ""


def test_evidence_with_other_variables_does_not_allow_a_revocation(keys: Keys) -> None:
    account, ids = keys
    found = found_with(keys, {"keep": 0}, {"keep": 1}, step="commit")
    error = refusal(account, "revoke", *found, key_id=ids[-1], variables={"keep": 0})
    assert error.details["consumers"] == ["web2"]
