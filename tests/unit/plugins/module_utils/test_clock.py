# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock of real tasks, and deadlines."""

from __future__ import annotations

from ansible_collections.clouddb.control.plugins.module_utils._clock import Deadline
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock


def test_a_deadline_passes() -> None:
    fake = FakeClock()
    deadline = Deadline.after(fake.clock, 5.0)
    assert deadline.remaining() == 5.0
    fake.sleep(4.5)
    assert deadline.remaining() == 0.5
    fake.sleep(1.0)
    assert deadline.remaining() == 0.0
