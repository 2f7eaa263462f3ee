# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode: what a task would do to a resource, by GET requests only. Keeps P9."""

from __future__ import annotations

from ansible.module_utils.common.dict_transformations import dict_merge

from .._errors import Result, will_fail
from .._http.client import Client
from .compare import fields_of
from .engine import FAIL, require_fixed, step_for
from .goal import DELETE, Goal
from .lookup import label_of
from .observe import Observation, observe
from .outcome import result_of
from .state import ABSENT, BROKEN, DELETING


def preview(client: Client, goal: Goal) -> Result:
    """What the task would return. A resource that would be created has the id null.

    Raises what Client raises, ClouddbError and InvalidOption.
    """
    # Without its id, which an earlier task would have created, there is nothing to look up.
    can_look_up = goal.find is not None and goal.find.has_all_values
    seen = observe(client, goal) if can_look_up else Observation(ABSENT, None)
    require_fixed(goal, seen)
    step = step_for(goal, seen) if can_look_up else next(iter(goal.requests))
    found, warnings = seen.resource, [*seen.warnings]
    if step == FAIL:
        step = next(iter(goal.requests))
        warnings.append(will_fail(f"No resource matches {goal.selector}"))
    if seen.state == BROKEN and found and step not in goal.requests:
        warnings.append(will_fail(f"The creation of {label_of(found)} has failed", "deletes it"))
    if seen.state == DELETING and goal.creates:
        # The task would wait until it is gone.
        step, found = next(iter(goal.requests)), None
    if step not in goal.requests:
        return result_of(found, found, warnings=warnings)
    request = goal.request(step, found)
    after = None if step == DELETE else dict_merge(found or {"id": None}, fields_of(request.wanted, found or {}))
    return result_of(found, after, changed=True, request=request.shown(found), warnings=warnings)
