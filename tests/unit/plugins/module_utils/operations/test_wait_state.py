# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_failure import WaitFailed
from ansible_collections.clouddb.control.plugins.module_utils._operations.wait_state import (
    OperationRef,
)
from ansible_collections.clouddb.control.tests.unit.plugins.module_utils.operations.simulated_service import (
    Service,
    new_state,
    rate_limited,
    wait_for,
)
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


def test_under_a_rate_limit_every_operation_of_a_project_is_polled_in_turn(
    client: Client, clock: FakeClock, service_of: Callable[..., Service]
) -> None:
    """Three hundred of one project, none of which is among the newest ones, and one of another project."""
    service = service_of(
        lambda name, elapsed: "failed" if elapsed >= 1 and name == "p0-op380" else "running", projects=2, operations=400
    )
    rate_limited(service, clock, requests=40)
    with pytest.raises(WaitFailed) as error:
        wait_for(client, [*service.refs[100:400], service.refs[400]], workers=1).run()
    assert error.value.result["failed_ids"] == ["p0-op380"]
    assert clock.elapsed <= 20


def test_other_threads_may_record_operations_while_a_404_is_classified(client: Client) -> None:
    refs = [OperationRef("proj-1", f"op-{number}") for number in range(3)]
    state = new_state(client, refs)
    state.record(refs[0], {"id": "op-0", "status": "running"})

    class Path(str):
        def endswith(self, *suffix: Any) -> bool:
            state.record(refs[1], {"id": "op-1", "status": "running"})
            return super().endswith(*suffix)

    assert state.may_be_unknown(Path("/projects/proj-1/operations/op-2"))
    assert not state.may_be_unknown(Path("/projects/proj-1/operations/op-1"))
