# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode: what a request would do."""

from __future__ import annotations

from .._http.client import Client
from .compare import fields_of, has_values
from .fetch import fetch
from .lookup import Lookup, NoMatch, check_unknown, is_fulfilled, look_up
from .outcome import Outcome
from .path import is_complete
from .plan import Find, Plan


def preview(client: Client, plan: Plan) -> Outcome:
    """What carry_out() would do; sends GET requests only. An object that would be created has the id null."""
    if plan.method == "GET":
        return _preview_of_get(client, plan)
    # Without its id, which an earlier task would have created, there is nothing to look up.
    can_look_up = plan.find is not None and _has_values(plan.find)
    lookup = look_up(client, plan) if can_look_up else Lookup(None, [])
    found, warnings = lookup.found, check_unknown(plan, lookup)
    if can_look_up and is_fulfilled(plan, found):
        return Outcome(False, object=found, before=found, warnings=warnings)
    fields = fields_of(plan.body, found or {})
    if plan.method == "DELETE":
        return Outcome(True, before=found)
    if plan.method != "POST" and can_look_up and found is None:
        warnings.append(_will_fail(plan))
    planned = {"id": None, **fields} if found is None else {**found, **fields}
    return Outcome(True, object=planned, before=found, warnings=warnings)


def _will_fail(plan: Plan) -> str:
    return f"No object matches find. Unless an earlier task creates it, {plan.name} will fail."


def _has_values(find: Find) -> bool:
    return is_complete(find.segments) and has_values(find.match) and has_values(find.query)


def _preview_of_get(client: Client, plan: Plan) -> Outcome:
    """The response, or a warning if the request is about an object that only an earlier task would create."""
    if not (is_complete(plan.segments) and has_values(plan.query)) or (plan.find and not _has_values(plan.find)):
        unknown = "because a value in it is not known. An earlier task would create the object."
        return Outcome(False, warnings=[f"{plan.name} was not sent, {unknown}"])
    try:
        return fetch(client, plan)
    except NoMatch:
        return Outcome(False, warnings=[_will_fail(plan)])
