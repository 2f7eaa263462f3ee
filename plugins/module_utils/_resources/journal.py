# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task has sent so far and has seen of its resource. Keeps P2 and P3."""

from __future__ import annotations

from datetime import datetime

from .._http.errors import RequestFailed
from .._http.response import Response
from .._operations.operations import Operation
from .goal import Goal, Resource


class Journal:
    """The past of one goal."""

    def __init__(self, goal: Goal) -> None:
        # The request that was sent, or that would be first.
        self.request = goal.first
        # The step whose request was sent, other than to a locked project: it is not sent again.
        self.sent: str | None = None
        # When the request was first sent, by the service's clock.
        self.sent_at: datetime | None = None
        # Whether the service has carried it out, or may have.
        self.changed = False
        # What went wrong with the request, until an observation shows that nothing did.
        self.error: RequestFailed | None = None
        self.response: Response | None = None
        # The resource before the request, and as it was last seen.
        self.before: Resource | None = None
        self.known: Resource | None = None
        # The operations about the resource, and whether they were waited for.
        self.operations: list[Operation] = []
        self.has_waited = False
        self.warnings: list[str] = []

    @property
    def subject(self) -> Resource | None:
        """What is known of the resource that the request was about; None before the request, which may be about another one."""
        return (self.known or {}) if self.sent or self.changed else None
