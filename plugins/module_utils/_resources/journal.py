# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task has done so far and has seen of its resource, and the result that follows. Keeps P2 and P3."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from .._errors import Result
from .._http.errors import RequestFailed
from .._operations.operations import Operation
from .compare import contains, differing, fields_of
from .goal import CHANGE, CREATE, Goal, Resource, ResourceRequest
from .outcome import created_differently, ignored_fields_warning, result_of
from .waiting import Waiting


class Journal:
    """The past of one task."""

    def __init__(self, goal: Goal, waiting: Waiting) -> None:
        self._goal, self._waiting = goal, waiting
        # The step whose request was sent, other than to a locked project: it is not sent again.
        self.sent: str | None = None
        # When the request was first sent, by the service's clock.
        self.sent_at: datetime | None = None
        # Whether the service has carried it out, or may have.
        self.changed = False
        # What went wrong with the request, until an observation shows that nothing did.
        self.error: RequestFailed | None = None
        # Those of the response.
        self.status: int | None = None
        self.json: Any = None
        # The resource before the request, and as it was last seen.
        self.before: Resource | None = None
        self.known: Resource | None = None
        # The operations about the resource, and whether they were waited for.
        self.operations: list[Operation] = []
        self.has_waited = False
        self.warnings: list[str] = []

    @property
    def request(self) -> ResourceRequest:
        """The request that was sent, or that would be first."""
        return self._goal.request(self.sent, self.before) if self.sent else self._goal.first

    def so_far(self, resource: Resource | None) -> Result:
        """The task's result as it is so far."""
        return result_of(
            self.before,
            resource,
            changed=self.changed,
            json=self.json,
            status=self.status,
            operations=self.operations,
            elapsed=self._waiting.elapsed(),
            polls=self._waiting.polls,
            request=self.request.shown(self.before) if self.changed or self.status else None,
            warnings=self.warnings,
        )

    def result(self, resource: Resource | None, operations: Sequence[Operation]) -> Result:
        """The task's result at its end. Raises ClouddbError if C(find) would not find what was created."""
        goal, request, changed, warnings = self._goal, self.request, self.changed, [*self.warnings]
        if changed and self.status is None:
            warnings.append(f"The response to {request.line} was lost, but the service has carried out the request.")
        elif changed and self.sent == CHANGE and self.before and resource:
            before = self.before
            pairs = [(before.get(name), resource.get(name)) for name in fields_of(request.wanted, before)]
            changed = not all(contains(old, new) and contains(new, old) for old, new in pairs)
            if ignored := differing(resource, request.wanted):
                warnings.append(ignored_fields_warning(goal, request, ignored))
        result = {
            **self.so_far(resource),
            "changed": changed,
            "operations": list({each["id"]: each for each in [*self.operations, *operations]}.values()),
            "warnings": warnings,
        }
        if not self.changed:
            result["diff"] = {"before": {}, "after": {}}
        match = goal.find.match if goal.find and self.sent == CREATE and self.changed else {}
        if resource and not contains(resource, match):
            raise created_differently(goal, resource, match, result)
        return result
