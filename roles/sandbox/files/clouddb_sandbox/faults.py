# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on request: rules that tests add over /_sandbox/faults, each of which spoils the next answers it fits."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field

from .bodies import ControlBody, HeaderValue


class Rule(ControlBody):
    """Which requests a fault hits. `path` is a glob on the path below the base path; its `*` also matches `/`."""

    method: str | None = None
    path: str = "*"
    times: int | None = Field(default=1, ge=1, description="how many requests it hits; null: all, until it is cleared")
    skip: int = Field(default=0, ge=0, description="how many fitting requests it lets pass first")

    def fits(self, method: str, path: str) -> bool:
        return (self.method is None or self.method.upper() == method) and fnmatchcase(path, self.path)


class Passing(Rule):
    """Changes what a request meets, and lets it go on."""


class Deciding(Rule):
    """Decides the answer, or that there is none."""


class StatusFault(Deciding):
    """Answers with this status; the request is not carried out."""

    kind: Literal["status"]
    status: int = Field(ge=200, le=599)
    retry_after: HeaderValue | int | None = None
    body: Any = Field(default=None, description="sent as JSON, or as text if it is a string; default: an error body")


class HtmlFault(Deciding):
    """Answers 200 with a page for people; the request is not carried out."""

    kind: Literal["html"]


class RedirectFault(Deciding):
    """Answers 302; the request is not carried out."""

    kind: Literal["redirect"]
    location: HeaderValue


class ResetFault(Deciding):
    """Cuts the connection before anything is done."""

    kind: Literal["reset"]


class StallFault(Deciding):
    """Says nothing for so many real seconds, then cuts the connection; the request is not carried out."""

    kind: Literal["stall"]
    seconds: float = Field(ge=0)


class LostAnswerFault(Deciding):
    """Carries the request out, then cuts the connection without a byte of the answer."""

    kind: Literal["lost_answer"]


class TruncateFault(Deciding):
    """Carries the request out, sends half of the answer's body under its full length, then cuts the connection."""

    kind: Literal["truncate"]


class MalformedFault(Deciding):
    """Carries the request out, answers with half of the JSON as if it were whole."""

    kind: Literal["malformed"]


class DelayFault(Passing):
    """Waits so many real seconds, then goes on."""

    kind: Literal["delay"]
    seconds: float = Field(ge=0)


class PageLimitFault(Passing):
    """No list page holds more items, whatever `limit` says."""

    kind: Literal["page_limit"]
    items: int = Field(ge=1)


class UnavailableProjectsFault(Passing):
    """The project list lacks these projects and names them in `unavailable_project_ids`."""

    kind: Literal["unavailable_projects"]
    ids: list[str] = Field(min_length=1)


Fault = Annotated[
    StatusFault
    | HtmlFault
    | RedirectFault
    | ResetFault
    | StallFault
    | LostAnswerFault
    | TruncateFault
    | MalformedFault
    | DelayFault
    | PageLimitFault
    | UnavailableProjectsFault,
    Field(discriminator="kind"),
]


class Faults:
    """The faults in force, oldest first. They are used on the event loop only, and live as long as the process."""

    def __init__(self) -> None:
        self._rules: dict[int, Fault] = {}
        self._last_id = 0

    def add(self, fault: Fault) -> dict[str, Any]:
        self._last_id += 1
        self._rules[self._last_id] = fault
        return {"id": self._last_id, **fault.model_dump()}

    def remaining(self) -> list[dict[str, Any]]:
        return [{"id": rule_id, **fault.model_dump()} for rule_id, fault in self._rules.items()]

    def clear(self) -> None:
        self._rules.clear()

    def draw(self, method: str, path: str) -> list[Fault]:
        """The faults that hit this request: any number that let it go on, and at most one that decides the answer."""
        drawn: list[Fault] = []
        for rule_id, fault in list(self._rules.items()):
            if not fault.fits(method, path):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            drawn.append(fault)
            if fault.times is not None:
                fault.times -= 1
                if not fault.times:
                    del self._rules[rule_id]
            if isinstance(fault, Deciding):
                break
        return drawn
