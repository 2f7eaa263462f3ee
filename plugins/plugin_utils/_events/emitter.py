# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns changes into events, and puts them into the queue of a rulebook. Keeps P2, P5 and P8."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from ...module_utils._timestamps import seconds_between
from ...module_utils._untrusted import MAX_MESSAGE_LENGTH, displayable, walk, without_templates
from .changes import Change

# Maximum time for the rules to receive an event, in seconds.
RULES_TIMEOUT = 60.0
EVENT_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "clouddb.control.operations")


class Queue(Protocol):
    """The queue that a rulebook passes to an event source."""

    async def put(self, event: Any, /) -> None:
        """Put one event into the queue."""


def is_delivered(queue: Queue) -> bool:
    """Whether the queue no longer holds any event. Without a way to find out, it is assumed."""
    # ansible-rulebook gives a queue with filters around the one that holds events, a single one.
    empty = getattr(getattr(queue, "queue", queue), "empty", None)
    return empty is None or bool(empty())


async def wait_until_delivered(queue: Queue) -> None:
    """Wait until is_delivered(), at most RULES_TIMEOUT."""
    end = time.monotonic() + RULES_TIMEOUT
    while not is_delivered(queue) and time.monotonic() < end:
        await asyncio.sleep(0.02)


def event_of(change: Change, project: Mapping[str, Any]) -> dict[str, Any]:
    """The event of a change; if it is emitted again after a crash, it has the same C(meta.uuid).

    It is a copy, because filters of a rulebook may change it. Its texts are displayable and hold no templates, even joined, because rules
    show them and ansible-rulebook passes events to playbooks as extra variables, which Ansible renders.
    """
    operation, previous_status = change.operation, change.previous and change.previous.status
    identity = [
        project["id"],
        operation["id"],
        previous_status,
        operation["status"],
        change.number,
    ]
    content = {
        "operation": operation,
        "previous_status": previous_status,
        "project": project,
        "seconds": seconds_between(operation, "created_at", "updated_at"),
    }
    displayed = walk(content, lambda text: without_templates(displayable(text, MAX_MESSAGE_LENGTH)))
    return {"clouddb": displayed, "meta": {"uuid": str(uuid.uuid5(EVENT_NAMESPACE, json.dumps(identity)))}}
