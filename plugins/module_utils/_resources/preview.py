# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode: what a request would do. Keeps P9."""

from __future__ import annotations

from .._http.client import Client
from .compare import fields_of
from .engine import FAIL, NEEDS_REQUEST, SEND, STEPS
from .lookup import name_of
from .observe import Observation, observe, with_operations
from .outcome import Result, result_of, will_fail
from .plan import Plan
from .state import BROKEN, GOING


def preview(client: Client, plan: Plan) -> Result:
    """What the task would return; sends GET requests only. A resource that would be created has the id null."""
    find = plan.find
    # Without its id, which an earlier task would have created, there is nothing to look up.
    is_known = find is not None and find.is_known
    seen = observe(client, plan) if is_known else Observation(NEEDS_REQUEST[plan.method], None)
    seen = with_operations(client, plan, seen)
    step, found = STEPS[plan.method][seen.state], seen.resource
    warnings = []
    if is_known and step == FAIL:
        warnings.append(will_fail(plan))
    if found and seen.state == BROKEN and step != SEND:
        failed = f"The creation of {name_of(found)} has failed"
        warnings.append(f"{failed}. Unless an earlier task deletes it, {plan.name} will fail.")
    is_recreated = plan.method == "POST" and seen.state == GOING
    if step not in (SEND, FAIL) and not is_recreated:
        return result_of(found, found, warnings=warnings)
    before = None if is_recreated else found
    after = {**(before or {"id": None}), **fields_of(plan.body, before or {})} if plan.method != "DELETE" else None
    return result_of(before, after, changed=True, request=plan.request(before), warnings=warnings)
