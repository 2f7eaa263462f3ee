# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has changed since the last look, and how far a look reads."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import NotFound, UnexpectedResponse
from ansible_collections.clouddb.control.plugins.plugin_utils._events.changes import (
    MAX_REMEMBERED,
    Look,
    SeenOperations,
    poll_changes,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import EPOCH
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve, page
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply


def operation(number: int, status: str = "finished", **fields: Any) -> dict[str, Any]:
    """The operation of this number, which was created so many minutes after EPOCH."""
    created_at = (EPOCH + timedelta(minutes=number)).isoformat()
    return {"id": f"o{number}", "status": status, "action": "apply_config", "created_at": created_at, **fields}


def memory(*known: dict[str, Any]) -> SeenOperations:
    """A memory that has had its first look at these."""
    remembered = SeenOperations(None)
    for each in known:
        remembered.note(each)
    return remembered


def told(remembered: SeenOperations, *shown: dict[str, Any], left_out: Any = None) -> list[tuple[str, str | None, str]]:
    """Tell all changes of this look, oldest first; id, status before, and status of each."""
    look = Look(list(shown), [], left_out)
    changes = remembered.changes(look)
    for change in changes:
        remembered.note(change.operation)
    remembered.all_told(look)
    return [(change.operation["id"], change.previous_status, change.operation["status"]) for change in changes]


def test_the_first_look_tells_only_what_is_new() -> None:
    remembered = SeenOperations(EPOCH)
    assert told(remembered, operation(-2, "running"), operation(-1), operation(0)) == [("o0", None, "finished")]
    assert told(remembered, operation(-2, "failed"), operation(-1), operation(0)) == [("o-2", "running", "failed")]


def test_after_the_first_look_the_clocks_do_not_matter() -> None:
    remembered = SeenOperations(EPOCH)
    told(remembered, operation(-3))
    assert told(remembered, operation(-3), operation(-2)) == [("o-2", None, "finished")]


def test_what_the_first_look_left_out_is_never_told() -> None:
    remembered = SeenOperations(EPOCH)
    told(remembered, operation(-5), left_out=EPOCH - timedelta(minutes=5))
    assert told(remembered, operation(-7), operation(-6)) == []


def test_only_so_many_ended_operations_are_remembered_and_none_is_told_again() -> None:
    remembered = memory(operation(0, "running"))
    many = [operation(number) for number in range(1, MAX_REMEMBERED + 51)]
    assert len(told(remembered, *many)) == len(many)
    assert len(remembered.known) == MAX_REMEMBERED + 1
    assert remembered.floor == EPOCH + timedelta(minutes=50)
    assert told(remembered, operation(0, "running"), *many) == []
    assert remembered.followed(()) == ["o0"]


def test_only_unfinished_operations_with_wanted_actions_are_followed() -> None:
    remembered = memory(
        operation(1),
        operation(2, "failed"),
        operation(3, "unheard_of"),
        operation(4, "running", action="create_branch"),
    )
    assert remembered.followed(()) == ["o3", "o4"]
    assert remembered.followed(("create_branch",)) == ["o4"]


def test_a_memory_survives_json() -> None:
    remembered = SeenOperations(EPOCH)
    told(remembered, operation(1, "running"), left_out=EPOCH)
    for each in (remembered, SeenOperations(EPOCH)):
        assert vars(SeenOperations.from_json(json.loads(json.dumps(each.as_json())))) == vars(each)


def test_a_look_ends_at_what_is_known(serve: Serve) -> None:
    served = serve(page("operations", [operation(3), operation(2), operation(1)], "c"))
    look = poll_changes(served.client, "p", memory(operation(2), operation(1)), ())
    assert [each["id"] for each in look.operations] == ["o1", "o2", "o3"]
    assert served.targets == ["/projects/p/operations?limit=50"]


def test_a_look_reads_on_while_everything_is_new(serve: Serve) -> None:
    served = serve(
        page("operations", [operation(4), operation(3)], "c"), page("operations", [operation(2), operation(1)], "d")
    )
    look = poll_changes(served.client, "p", memory(operation(1)), ())
    assert [each["id"] for each in look.operations] == ["o1", "o2", "o3", "o4"]


def test_few_operations_out_of_sight_are_fetched_and_one_that_is_gone_is_said(serve: Serve) -> None:
    served = serve(
        page("operations", [operation(9)], "c"), reply({"operation": operation(1, "failed")}), reply({}, 404)
    )
    look = poll_changes(served.client, "p", memory(operation(1, "running"), operation(2, "running"), operation(9)), ())
    assert [each["id"] for each in look.operations] == ["o1", "o9"]
    assert look.gone == ["o2"]


def test_many_unfinished_operations_are_read_from_the_pages_that_show_them(serve: Serve) -> None:
    unfinished = [operation(number, "running") for number in range(10)]
    served = serve(page("operations", unfinished[:4:-1], "c"), page("operations", unfinished[4::-1], "d"))
    look = poll_changes(served.client, "p", memory(*unfinished), ())
    assert len(look.operations) == 10
    assert len(served.requests) == 2


def test_a_project_that_is_gone_is_not_found(serve: Serve) -> None:
    served = serve(reply({}, 404))
    with pytest.raises(NotFound):
        poll_changes(served.client, "p", SeenOperations(EPOCH), ())


@pytest.mark.parametrize("created_at", [None, "yesterday"])
def test_an_operation_without_a_moment_is_not_understood(serve: Serve, created_at: Any) -> None:
    served = serve(page("operations", [operation(1, created_at=created_at)]))
    with pytest.raises(UnexpectedResponse, match="created_at"):
        poll_changes(served.client, "p", SeenOperations(EPOCH), ())
