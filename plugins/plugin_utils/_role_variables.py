# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names the variable of a role of this collection where a module names the option that the role gives it. Keeps P11."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLLECTION = "clouddb.control."


def with_variable(result: dict[str, Any], task_path: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The result, whose message begins with the variable if it began with the option.

    Not that of a task in a file of the user, which a role may include.
    """
    role, message = str(variables.get("ansible_role_name")), str(result.get("msg"))
    if not result.get("failed") or not role.startswith(COLLECTION) or f"{variables.get('role_path')}/" not in task_path:
        return result
    prefix = f"{role.removeprefix(COLLECTION)}_"
    option, separator, _problem = message.partition(": ")
    return {**result, "msg": f"{prefix}{message}"} if separator and prefix + option in variables else result
