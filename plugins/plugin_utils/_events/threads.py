# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls blocking functions in threads that the event loop need not wait for when it ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Callable, TypeVar

from ...module_utils._http.attempt import Worker

Argument = TypeVar("Argument")
Result = TypeVar("Result")


async def in_thread(function: Callable[[Argument], Result], argument: Argument) -> Result:
    """The function's result.

    Unlike that of asyncio.to_thread, the thread is abandoned when the caller is cancelled.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Result] = loop.create_future()

    def deliver(set_outcome: Callable[[Any], None], value: Any) -> None:
        if not outcome.cancelled():
            set_outcome(value)

    def work() -> None:
        set_outcome: Callable[[Any], None] = outcome.set_result
        try:
            value: Any = function(argument)
        except BaseException as error:  # pylint: disable=broad-except
            set_outcome, value = outcome.set_exception, error
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, set_outcome, value)

    thread = Worker(work)
    thread.start()
    try:
        return await outcome
    finally:
        thread.is_abandoned = True
