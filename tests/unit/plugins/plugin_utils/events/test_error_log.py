# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One message when an outage begins, one when it is over."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import RequestFailed
from ansible_collections.clouddb.control.plugins.plugin_utils._events.error_log import ErrorLog
from ansible_collections.clouddb.control.tests.unit.support.fake_clock import FakeClock

ERROR = RequestFailed("It failed.", "GET", "/projects", 1, "r")
BEGIN = "Polling failed. It is retried until it succeeds. It failed."


def test_outage_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    log = ErrorLog(clock.clock)
    log.succeeded("a")
    log.failed("a", ERROR)
    clock.sleep(50)
    log.failed("b", ERROR)
    log.failed("a", ERROR)
    log.succeeded("a")
    log.succeeded("c")
    assert caplog.messages == [BEGIN]
    clock.sleep(10)
    log.succeeded("b")
    log.succeeded("b")
    assert caplog.messages == [BEGIN, "Polling succeeds again, after 60 s."]
    log.failed("b", ERROR)
    assert caplog.messages[2:] == [BEGIN]
    assert {record.name for record in caplog.records} == {"clouddb.control.operations"}
