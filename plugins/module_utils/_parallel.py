# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a function for each of several arguments in parallel. Keeps P4 and P12."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Callable, TypeVar

Argument = TypeVar("Argument")
Value = TypeVar("Value")


class Worker(threading.Thread):
    """A thread that a process does not wait for when it ends; once C(is_abandoned) is set, it sends no more requests."""

    is_abandoned = False

    def __init__(self, work: Callable[[], Any]):
        super().__init__(target=work, name="clouddb.control worker", daemon=True)


def in_parallel(function: Callable[[Argument], Value], arguments: Sequence[Argument], workers: int) -> list[Value]:
    """The results in the order of the arguments, computed by at most C(workers) threads.

    The first exception is raised at once. Calls that have not begun are dropped, running calls are abandoned.
    """
    if workers == 1 or len(arguments) < 2:
        return [function(argument) for argument in arguments]
    calls = deque(enumerate(arguments))
    ended: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()

    def work() -> None:
        while True:
            try:
                index, argument = calls.popleft()
            except IndexError:
                return
            try:
                ended.put((index, function(argument), None))
            except BaseException as error:  # pylint: disable=broad-except
                calls.clear()
                ended.put((index, None, error))

    threads = [Worker(work) for _worker in range(min(workers, len(arguments)))]
    results: dict[int, Value] = {}
    try:
        for thread in threads:
            thread.start()
        while len(results) < len(arguments):
            index, result, error = ended.get()
            if error is not None:
                raise error
            results[index] = result
    finally:
        calls.clear()
        for thread in threads:
            thread.is_abandoned = True
    return [results[index] for index in range(len(arguments))]
