# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._role_variables import with_variable

ROLE_PATH = "/collections/control/roles/account_report"
TASK = f"{ROLE_PATH}/tasks/main.yml:100"
VARIABLES = {
    "ansible_role_name": "clouddb.control.account_report",
    "role_path": ROLE_PATH,
    "account_report_workers": 99,
}
FAILED = {"failed": True, "msg": "workers: must be from 1 to 32, not 99."}


def test_a_message_in_the_role_names_its_variable() -> None:
    assert with_variable(FAILED, TASK, VARIABLES) == {**FAILED, "msg": f"account_report_{FAILED['msg']}"}


@pytest.mark.parametrize(
    ("result", "task", "variables"),
    [
        (FAILED, "/home/user/deploy.yml:3", VARIABLES),
        (FAILED, TASK, {**VARIABLES, "ansible_role_name": "user.own.account_report"}),
        (FAILED, TASK, {}),
        ({**FAILED, "msg": "fields: must not be empty."}, TASK, VARIABLES),
        ({**FAILED, "msg": "workers"}, TASK, VARIABLES),
        ({**FAILED, "failed": False}, TASK, VARIABLES),
    ],
)
def test_other_messages_stay(result: dict[str, Any], task: str, variables: dict[str, Any]) -> None:
    assert with_variable(result, task, variables) == result
