# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task wants of a resource: its intent, how to find the resource, and the requests that it may send. Keeps P2, P8 and P9."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Callable, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._http.client import SUCCESS, Client, path_of
from .._options import NOT_CREATED_ID
from .._timestamps import timestamp_of
from .._untrusted import displayable, is_id
from .compare import contains, differing, fields_of, has_values

Resource = dict[str, Any]

# Intents. All but the first and the last are steps as well, each with a request.
ENSURE, CREATE, CHANGE, DELETE, ACT, READ = "ensure", "create", "change", "delete", "act", "read"

PLACEHOLDER = re.compile(r"\{(\w+)\}")
_WITHOUT_VALUE = ("", "None", NOT_CREATED_ID)


class Find(NamedTuple):
    """Selects one resource: from the array C(field) (None: the response itself) of the list C(segments), by the fields in C(match).

    C(selector) is what messages call C(match); unless it is C(find), C(match) and C(field) are no options of the task.
    """

    segments: tuple[str, ...]
    field: str | None
    match: Mapping[str, Any]
    query: Mapping[str, Any] = {}
    selector: str = "find"

    @property
    def is_option(self) -> bool:
        """Whether it is the option C(find)."""
        return self.selector == "find"

    @property
    def has_all_values(self) -> bool:
        """Whether everything has a value. In check mode, an earlier task would provide what has none."""
        return is_complete(self.segments) and has_values([self.match, self.query])


class Action(NamedTuple):
    """A request about a resource, POST C(path) below that of the resource, with a body of C(fields) by option.

    C(defaults) are the fields of the resource whose values these fields have without the option, and C(lacking) is the error if it
    has none. C(sets) are the fields that show that the action is not needed, or has been carried out, and C(operation) is the
    operation that sets them. Without C(sets), each task carries it out, and only a time in C(evidence) that has changed shows
    that it was.
    """

    path: str
    sets: Mapping[str, Any] | None = None
    fields: Mapping[str, str] = {}
    defaults: Mapping[str, str] = {}
    lacking: str = ""
    operation: str = ""
    evidence: tuple[str, ...] = ()


class ResourceRequest(NamedTuple):
    """A request about a resource; C(accept) has the statuses that are no failure.

    It is that of an C(action), or has the fields of the resource in C(wrapper) of its body (None: in any wrapper).
    """

    method: str
    segments: tuple[str, ...]
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] = {}
    accept: Collection[int] = SUCCESS
    action: Action | None = None
    wrapper: str | None = None

    def fields(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the resource that it sets, by their names there."""
        if self.action:
            return {**(self.action.sets or {})}
        return {**(self.body or {}).get(self.wrapper, {})} if self.wrapper else fields_of(self.body, found)

    def differing(self, found: Mapping[str, Any]) -> list[str]:
        """The names of the fields whose values the resource does not have."""
        if self.action or self.wrapper:
            return [name for name, value in self.fields(found).items() if not contains(found.get(name), value)]
        return differing(found, self.body)

    @property
    def line(self) -> str:
        """For messages, for example C(POST /projects/proj-1/branches)."""
        return f"{self.method} {path_of(self.segments).replace('%7B', '{').replace('%7D', '}')}"

    def shown(self, found: Resource | None) -> dict[str, Any]:
        """The request for the resource C(found), as the task's result shows it."""
        has_id = found and all(found.get(name) is not None for name in placeholders(self.segments))
        path = "/".join(("", *(fill(self.segments, found or {}) if has_id else self.segments)))
        return {"method": self.method, "path": path, "query": self.query, "body": self.body}


class Refusal(NamedTuple):
    """Why a request is refused, and what an earlier task of the play may do about it, such as C(creates it); empty: nothing."""

    error: ClouddbError
    remedy: str = ""


class Goal(NamedTuple):
    """What a task wants: C(intent), with the C(requests) that may be needed for it, by step.

    - ENSURE: that the resource is there with these fields. CREATE if it is absent, else CHANGE if it differs.
    - CREATE, CHANGE, DELETE: that it is there, has these fields, is gone.
    - ACT: that the request is carried out once.
    - READ: nothing but the response.

    C(options) are the options of a module by the field that each sets, C(fixed) the fields that only the creation sets, and
    C(missing) is the error if there is none, and C(moved) that about another value of a fixed field, by option. C(effects) are the fields that
    unfinished operations will set, by their action. The fields in C(once) are changed only while the resource has no time there.
    C(refuses) returns why the service's lists show that it refuses a request about a resource (None: one that it creates).
    """

    intent: str
    requests: Mapping[str, ResourceRequest]
    find: Find | None = None
    wait: bool = True
    options: Mapping[str, str] = {}
    fixed: Mapping[str, Any] = {}
    missing: str = ""
    moved: Mapping[str, str] = {}
    effects: Mapping[str, Mapping[str, Any]] = {}
    once: Collection[str] = ()
    refuses: Callable[[Client, Find, ResourceRequest, Resource | None], Refusal | None] | None = None

    @property
    def creates(self) -> bool:
        """Whether an absent resource is created."""
        return CREATE in self.requests

    @property
    def selector(self) -> str:
        """What selects the resource, for messages."""
        return self.find.selector if self.find else "find"

    @property
    def first(self) -> ResourceRequest:
        """The request that a task without a resource would send."""
        return next(iter(self.requests.values()))

    def request(self, step: str, found: Resource | None) -> ResourceRequest:
        """The request of a step for the resource that was found."""
        request = self.requests[step]
        if found is None:
            return request
        action = request.action or Action("")
        for name, field in action.defaults.items():
            if name in (request.body or {}):
                continue
            if found.get(field) is None:
                problem = action.lacking.format(name=displayable(found.get("name"), 100))
                raise InvalidOption(self.options[name], problem)
            request = request._replace(body={**(request.body or {}), name: found[field]})
        stay = {field for field in self.once if timestamp_of(found, field)}
        if not stay or request.body is None:
            return request
        body = {
            name: {field: value for field, value in fields.items() if field not in stay}
            for name, fields in request.body.items()
        }
        return request._replace(body=body)

    def differs(self, found: Resource | None) -> bool:
        """Whether a CHANGE would change the resource."""
        if found is None or CHANGE not in self.requests:
            return False
        return bool(self.request(CHANGE, found).differing(found))


def is_complete(segments: Sequence[str]) -> bool:
    """Whether every segment has a value."""
    return not any(segment.strip() in _WITHOUT_VALUE for segment in segments)


def placeholders(segments: Sequence[str]) -> set[str]:
    """The fields of the resource that segments stand for: C(id) for C({id})."""
    return {found[1] for found in map(PLACEHOLDER.fullmatch, segments) if found}


def fill(segments: Sequence[str], found: Mapping[str, Any]) -> tuple[str, ...]:
    """The segments with the resource's fields in place of the placeholders. Raises InvalidOption for one that it lacks."""
    filled = list(segments)
    for index, segment in enumerate(segments):
        if placeholder := PLACEHOLDER.fullmatch(segment):
            value = found.get(placeholder[1])
            if not isinstance(value, (str, int)) or str(value).strip() in ("", ".", ".."):
                fields = ", ".join(sorted(found))
                problem = f"the resource that was found has no text or number for {segment}. Its fields: {fields}."
                raise InvalidOption("path", problem)
            filled[index] = str(value)
    return tuple(filled)


def project_in_path(segments: Sequence[str]) -> str | None:
    """The project that the path is about (api.md, GET /projects/{project_id}/operations); None without one."""
    return segments[1] if len(segments) > 1 and segments[0] == "projects" and is_id(segments[1]) else None
