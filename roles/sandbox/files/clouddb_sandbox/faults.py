# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fault rules, which tests add with /_sandbox/faults, and the selection of those that apply to a request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field

from .clock import MAX_SECONDS
from .paths import BASE_PATH
from .request_models import ControlRequestModel, HeaderValue, one_of
from .rewriting import Omission
from .rules import ANSWERS
from .store import Store

Method = Annotated[str, Field(pattern="^(?i:GET|POST|PATCH|PUT|DELETE)$")]
SandboxSeconds = Annotated[float, Field(ge=0, le=MAX_SECONDS)]


class FaultRule(ControlRequestModel):
    """The requests that a fault applies to. `path` is a glob; its `*` also matches `/`.

    It may be written as in the request log, or as the option `path` of api_request: with the base path, or without a slash.
    """

    method: Method | None = None
    path: str = "*"
    times: int | None = Field(default=1, ge=1, description="number of requests to apply to; null: all, until cleared")
    skip: int = Field(default=0, ge=0, description="number of matching requests to skip first")

    def matches(self, method: str, path: str) -> bool:
        pattern = self.path.removeprefix(BASE_PATH).removeprefix("/")
        return (self.method is None or self.method.upper() == method) and fnmatchcase(path.removeprefix("/"), pattern)


class RequestFault(FaultRule):
    """Changes how the request is processed, and lets it continue to the next fault or the endpoint."""


class ResponseFault(FaultRule):
    """Determines the response, or prevents it."""


class StatusFault(ResponseFault):
    """Responds with this status. The request is not processed."""

    kind: Literal["status"]
    status: int = Field(ge=200, le=599)
    retry_after: HeaderValue | int | None = None
    body: Any = Field(default=None, description="sent as JSON, or as text if it is a string; default: an error body")


class RecordedFault(ResponseFault):
    """Responds as the service did once. The request is not processed."""

    kind: Literal["recorded"]
    answer: Annotated[str, one_of(*ANSWERS), Field(json_schema_extra={"enum": [*ANSWERS]})]


class RewriteFault(RequestFault):
    """Changes the body of a successful response. A path has names, `*` for each item or field, and dots between them."""

    kind: Literal["rewrite"]
    set: dict[str, Any] = {}
    omit: list[str] = []
    empty: bool = Field(default=False, description="no body at all")


class HtmlFault(ResponseFault):
    """Responds 200 with an HTML page. The request is not processed."""

    kind: Literal["html"]


class RedirectFault(ResponseFault):
    """Responds 302. The request is not processed."""

    kind: Literal["redirect"]
    location: HeaderValue


class ResetFault(ResponseFault):
    """Closes the connection before the request is processed."""

    kind: Literal["reset"]


class StallFault(ResponseFault):
    """Sends nothing for this number of real seconds, then closes the connection. The request is not processed."""

    kind: Literal["stall"]
    seconds: float = Field(ge=0)


class LostResponseFault(ResponseFault):
    """Processes the request, then closes the connection without sending any of the response."""

    kind: Literal["lost_answer"]


class TruncateFault(ResponseFault):
    """Processes the request, sends half of the response body with its full Content-Length, then closes the connection."""

    kind: Literal["truncate"]


class MalformedFault(ResponseFault):
    """Processes the request, then sends the first half of the JSON as a complete body."""

    kind: Literal["malformed"]


class DelayFault(RequestFault):
    """Waits for this number of real seconds before the request is processed."""

    kind: Literal["delay"]
    seconds: float = Field(ge=0)


class PageLimitFault(RequestFault):
    """Limits the items of a list page, whatever `limit` is."""

    kind: Literal["page_limit"]
    items: int = Field(ge=1)


class UnavailableProjectsFault(RequestFault):
    """Omits these projects from the project list and reports them in `unavailable_project_ids`."""

    kind: Literal["unavailable_projects"]
    ids: list[str] = Field(min_length=1)


class RequireOrgIdFault(RequestFault):
    """Responds 400 to requests for the project list without `org_id`."""

    kind: Literal["require_org_id"]
    method: Method | None = "GET"
    path: str = "/projects"
    times: int | None = Field(default=None, ge=1)


class WriteFault(RequestFault):
    """Applies to requests that change something."""

    def matches(self, method: str, path: str) -> bool:
        return method != "GET" and super().matches(method, path)


class ListLagFault(WriteFault):
    """For this time, the list that the request changes is returned as it was before."""

    kind: Literal["list_lag"]
    seconds: SandboxSeconds


class LateOperationsFault(WriteFault):
    """For this time, the operations that it and later requests start can neither be fetched nor listed."""

    kind: Literal["late_operations"]
    seconds: SandboxSeconds


class MissingOperationsFault(WriteFault):
    """Omits `operations` from the response. They run nevertheless."""

    kind: Literal["missing_operations"]
    operations: Omission = "absent"


class NormalizedNameFault(WriteFault):
    """Stores another name than the request has. With `echo`, the response has the name of the request."""

    kind: Literal["normalized_name"]
    trim: bool = False
    lower_case: bool = False
    max_length: int | None = Field(default=None, ge=1)
    echo: bool = False

    def normalize(self, name: str) -> str:
        name = name.strip() if self.trim else name
        return (name.lower() if self.lower_case else name)[: self.max_length]


class HiddenSourceFault(WriteFault):
    """For this time after a restore, the source branch gets 404."""

    kind: Literal["hidden_source"]
    path: str = "*/restore"
    seconds: SandboxSeconds = 30


class IgnoredChangeFault(WriteFault):
    """Responds 200 with the resource as it is. The change is not made."""

    kind: Literal["ignored_change"]
    method: Method | None = "PATCH"


class LingeringDeletionFault(WriteFault):
    """Accepts a deletion. The resource is deleted after this time; until then, another deletion gets the status `again`."""

    kind: Literal["lingering_deletion"]
    method: Method | None = "DELETE"
    seconds: SandboxSeconds
    status: Literal[200, 202] = 200
    operations: Literal["running", "absent", "null", "empty"] = "running"
    again: Literal[404, 409, 410, 412, 423] = 404


Fault = Annotated[
    StatusFault
    | RecordedFault
    | RewriteFault
    | HiddenSourceFault
    | HtmlFault
    | RedirectFault
    | ResetFault
    | StallFault
    | LostResponseFault
    | TruncateFault
    | MalformedFault
    | DelayFault
    | PageLimitFault
    | UnavailableProjectsFault
    | RequireOrgIdFault
    | ListLagFault
    | LateOperationsFault
    | MissingOperationsFault
    | NormalizedNameFault
    | IgnoredChangeFault
    | LingeringDeletionFault,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class Lag:
    """Until this time, GET requests for these paths are processed on the old state."""

    until: int
    paths: re.Pattern[str]
    old: Store


class FaultRegistry:
    """The active faults and lags, oldest first. Used on the event loop only; not persisted."""

    def __init__(self) -> None:
        self.lags: list[Lag] = []
        # The path of each lingering resource: until when, and the status of another deletion.
        self.lingering: dict[str, tuple[int, int]] = {}
        # The path of each branch that a restore hides, and until when.
        self.hidden: dict[str, int] = {}
        self._faults: dict[int, Fault] = {}
        self._last_id = 0

    def add(self, fault: Fault) -> dict[str, Any]:
        self._last_id += 1
        self._faults[self._last_id] = fault
        return {"id": self._last_id, **fault.model_dump()}

    def remaining(self) -> list[dict[str, Any]]:
        return [{"id": fault_id, **fault.model_dump()} for fault_id, fault in self._faults.items()]

    def clear(self) -> None:
        self._faults.clear()
        self.lags.clear()
        self.hidden.clear()

    def old_state(self, path: str, now: int) -> Store | None:
        """Return the state that a GET request is processed on, if it lags."""
        self.lags = [lag for lag in self.lags if now < lag.until]
        return next((lag.old for lag in self.lags if lag.paths.fullmatch(path)), None)

    def consume(self, method: str, path: str) -> list[Fault]:
        """Return the faults for this request, and count it: any number of request faults, then at most one response fault."""
        applied: list[Fault] = []
        for fault_id, fault in list(self._faults.items()):
            if not fault.matches(method, path):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            applied.append(fault)
            if fault.times is not None:
                fault.times -= 1
                if not fault.times:
                    del self._faults[fault_id]
            if isinstance(fault, ResponseFault):
                break
        return applied
