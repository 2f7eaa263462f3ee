# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls in threads: their outcome, and a caller that is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import AbandonedError, end_if_abandoned
from ansible_collections.clouddb.control.plugins.plugin_utils._events.threads import in_thread

MAX_WAIT = 60.0  # seconds; enough for a busy machine


def test_the_result_comes_from_another_thread() -> None:
    thread = asyncio.run(in_thread(lambda _argument: threading.current_thread(), None))
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_an_error_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        asyncio.run(in_thread(int, "x"))


def test_a_cancelled_caller_does_not_wait_for_the_thread() -> None:
    begun, cancelled, abandoned = threading.Event(), threading.Event(), threading.Event()

    def call(_argument: None) -> None:
        begun.set()
        assert cancelled.wait(MAX_WAIT)
        try:
            end_if_abandoned()
        except AbandonedError:
            abandoned.set()
            raise

    async def main() -> None:
        calling = asyncio.create_task(in_thread(call, None))
        await asyncio.to_thread(begun.wait, MAX_WAIT)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

    # The event loop is closed while the thread still runs.
    asyncio.run(main())
    cancelled.set()
    assert abandoned.wait(MAX_WAIT)
