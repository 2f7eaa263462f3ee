# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task wants of a resource: its intent, how to find the resource, and the requests that it may send. Keeps P2, P8 and P9."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._http.client import SUCCESS, path_of
from .._operations.status import ENDED
from .._options import NOT_CREATED_ID
from .._secrets import MASK
from .._timestamps import timestamp_of
from .._untrusted import displayable
from .kinds import Action, Kind
from .state import Resource, changed_fields, contains, label_of

# Intents. All but the first and the last are steps as well, each with a request.
ENSURE, CREATE, CHANGE, DELETE, ACT, READ = "ensure", "create", "change", "delete", "act", "read"

PLACEHOLDER = re.compile(r"\{(\w+)\}")
_WITHOUT_VALUE = ("", "None", NOT_CREATED_ID)


class Find(NamedTuple):
    """Selects one resource: from the array C(field) (None: the response itself) of the list C(segments), by the fields in C(match)."""

    segments: tuple[str, ...]
    field: str | None
    match: Mapping[str, Any]
    query: Mapping[str, Any] = {}

    @property
    def has_all_values(self) -> bool:
        """Whether everything has a value. In check mode, an earlier task would provide what has none."""
        return is_complete(self.segments) and has_values([self.match, self.query])


class ResourceRequest(NamedTuple):
    """A request about a resource; C(accept) has the statuses that are no failure.

    Its response has the resource in C(wrapper). It is that of an C(action), or has the fields of the resource in C(wrapper) of its
    body (None: in any wrapper), without a body in its query.
    """

    method: str
    segments: tuple[str, ...]
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] = {}
    accept: Collection[int] = SUCCESS
    action: Action | None = None
    wrapper: str | None = None

    @property
    def line(self) -> str:
        """For messages, for example C(POST /projects/proj-1/branches)."""
        return f"{self.method} {path_of(self.segments).replace('%7B', '{').replace('%7D', '}')}"

    def as_result(self, found: Resource | None) -> dict[str, Any]:
        """The request for the resource C(found), as the task's result shows it."""
        has_id = found and all(found.get(name) is not None for name in placeholders(self.segments))
        path = "/".join(("", *(fill(self.segments, found or {}) if has_id else self.segments)))
        return {"method": self.method, "path": path, "query": self.query, "body": self.body}

    def fields(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the resource that it sets, by their names there."""
        if self.action:
            return {**(self.action.sets_fields or {})}
        if self.wrapper:
            return {**(self.query if self.body is None else self.body[self.wrapper])}
        return fields_of(self.body, found)

    def differing(self, found: Mapping[str, Any]) -> list[str]:
        """The names of the fields whose values the resource does not have."""
        # Two wrappers of a body may have a field of the same name.
        is_free = not (self.action or self.wrapper)
        bodies = [fields_of({name: value}, found) for name, value in (self.body or {}).items()] if is_free else []
        each = bodies if is_free else [self.fields(found)]
        return [name for fields in each for name, value in fields.items() if not contains(found.get(name), value)]

    def planned_fields(self, found: Resource | None, now: datetime | None) -> dict[str, Any]:
        """The fields that it will have set: those that it has, and the time that shows an action."""
        time = f"{now:%Y-%m-%dT%H:%M:%SZ}" if now else None
        return {**self.fields(found or {}), **dict.fromkeys(self.action.evidence if self.action else (), time)}

    def diff(self, before: Resource | None, after: Resource | None) -> dict[str, dict[str, Any]]:
        """The diff of a task that has sent it: what was deleted, or the fields that it sets."""
        if self.method == "DELETE":
            return changed_fields(before or {}, {})
        if before is None and after and self.wrapper:
            # A project does not show the branch that it was created with.
            after = {**self.fields({}), **after}
        names = self.planned_fields(before, None)
        return changed_fields(*({name: each.get(name) for name in names} if each else {} for each in (before, after)))

    def resource_in(self, json: Any) -> Resource | None:
        """The resource that a response shows: C(branch) for a path with C(branches), or the response itself if it has an id."""
        if not isinstance(json, dict):
            return None
        if self.wrapper and isinstance(json.get(self.wrapper), dict):
            return dict(json[self.wrapper])
        for segment in reversed(self.segments):
            for name, value in json.items():
                if isinstance(value, dict) and segment.startswith(name):
                    return value
        return json if "id" in json else None


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

    C(kind) is None for api_request; messages name the resource and its fields by the options in C(params) then. C(fixed) are the
    fields that only the creation sets.
    """

    intent: str
    requests: Mapping[str, ResourceRequest]
    find: Find | None = None
    wait: bool = True
    kind: Kind | None = None
    params: Mapping[str, Any] = {}
    fixed: Mapping[str, Any] = {}

    @property
    def creates(self) -> bool:
        """Whether an absent resource is created."""
        return CREATE in self.requests

    @property
    def first_step(self) -> str:
        """The step of a task that knows nothing of the resource."""
        return next(iter(self.requests))

    @property
    def first_request(self) -> ResourceRequest:
        """The request of the first step. All have the path of the same project, and that of an action is the only one."""
        return self.requests[self.first_step]

    @property
    def selector(self) -> str:
        """The options that select the resource, for messages."""
        if self.kind is None:
            return "find"
        return "id" if self.params.get("id") else " and ".join(self.kind.identity)

    def option_of(self, field: str) -> str:
        """The option that sets this field, for messages; the field itself if there is none."""
        if self.kind is None:
            return field
        return next((option for option, name in self.fields_by_option.items() if name == field), field)

    def options_in(self, text: str) -> str:
        """Sentences about the options that set the fields in a text of the service; empty if it names them as the task does."""
        words = set(re.findall(r"\w+", text))
        given = {
            option: field for option, field in self.fields_by_option.items() if self.params.get(option) is not None
        }
        return " ".join(
            f"The option {option} sets {field}." for option, field in given.items() if field in words - {option}
        )

    @property
    def fields_by_option(self) -> dict[str, str]:
        """All fields that options set, by option."""
        return {**(self.kind.fields if self.kind else {}), **(self.first_request.action or Action("")).fields}

    @property
    def missing(self) -> str:
        """The error if the resource is not there, in the words of the task."""
        if self.kind is None:
            return ""
        noun, advice = self.kind.result.replace("_", " "), "Check it, and what the API key may access"
        if self.params.get("id"):
            return f"there is no {noun} with the id {displayable(self.params['id'], 100)}. {advice}"
        if self.params.get("state") == "recovered":
            advice = f"None of this name that was deleted can be recovered, either. {advice}"
        names = {each: displayable(self.params.get(each) or f"the default {each}", 100) for each in self.kind.identity}
        problem = next(filter(None, map(self.kind.problems.get, names)), "there is no {noun} '{name}'. {advice}")
        return problem.format(noun=noun, advice=advice, **names)

    def unchangeable(self, field: str, found: Resource) -> InvalidOption:
        """The error about another value of a fixed field, in the words of the task."""
        option = self.option_of(field)
        names = {each: displayable(value, 100) for each, value in self.params.items() if isinstance(value, str)}
        if self.kind and option in names and (problem := self.kind.problems.get(option)):
            return InvalidOption(option, problem.format(**names))
        problem = f"{label_of(found)} has {field} {found[field]}, which cannot be changed"
        return InvalidOption(option, f"{problem}. Set {option} to this value, or omit it.")

    def expected(self, resource: Resource | None, operations: Sequence[Mapping[str, Any]]) -> Resource:
        """The resource as it will be when the unfinished actions on it, newest first, have ended."""
        expected = {**(resource or {})}
        actions, noun = (self.kind.actions.values(), self.kind.result) if self.kind else ((), "")
        # The operation of the action start is start_compute.
        effects = {f"{each.path}_{noun}": each.sets_fields for each in actions}
        for operation in reversed(operations):
            if operation["status"] not in ENDED:
                expected.update(effects.get(str(operation.get("action"))) or {})
        return expected

    def request(self, step: str, found: Resource | None) -> ResourceRequest:
        """The request of a step for the resource that was found."""
        request = self.requests[step]
        if found is None:
            return request
        body = {**(request.body or {})}
        for name, (field, lacking) in request.action.defaults.items() if request.action else ():
            if name not in body and found.get(field) is None:
                raise InvalidOption(self.option_of(name), lacking.format(name=displayable(found.get("name"), 100)))
            body.setdefault(name, found.get(field))
        if request.wrapper in body:
            kept = self._kept_times(found)
            wanted = {name: value for name, value in body[request.wrapper].items() if name not in kept}
            body[request.wrapper] = {name: _in_full(found.get(name), value) for name, value in wanted.items()}
        return request._replace(body=body) if body else request

    def _kept_times(self, found: Resource) -> set[str]:
        """The fields that the task gives an age, and that have a time already: each run would prolong it."""
        changeable = self.kind.changeable if self.kind else {}
        ages = {field for option, field in changeable.items() if isinstance(self.params.get(option), timedelta)}
        return {field for field in ages if timestamp_of(found, field)}

    def differs(self, found: Resource | None) -> bool:
        """Whether a CHANGE would change the resource."""
        if found is None or CHANGE not in self.requests:
            return False
        return bool(self.request(CHANGE, found).differing(found))


def deletion(kind: Kind, find: Find, params: Mapping[str, Any], wait: bool) -> Goal:
    """The goal that the resource is gone."""
    request = ResourceRequest("DELETE", path_of_item(kind, find.segments))
    return Goal(DELETE, {DELETE: request}, find, wait, kind, params)


def path_of_item(kind: Kind, segments: Sequence[str]) -> tuple[str, ...]:
    """The path of a resource of this kind in the list C(segments)."""
    return (*segments, f"{{{kind.key}}}")


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


def fields_of(body: Mapping[str, Any] | None, found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a request would set, by their names in the resource.

    The service's bodies wrap them: C({"branch": {"name": "preview"}}) sets the C(name) of a branch.
    """
    fields: dict[str, Any] = {}
    for name, value in (body or {}).items():
        if isinstance(value, Mapping) and not isinstance(found.get(name), Mapping):
            fields.update(value)
        else:
            fields[name] = value
    return fields


def _in_full(own: Any, wanted: Any, is_part: bool = False) -> Any:
    """What a request sets, each part of it in full: the service drops what a part lacks, such as the other C(pg_settings).

    Other parts are left out, because the service refuses some of them on some plans, even unchanged.
    """
    if not isinstance(own, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    # A mask is not the value of the field.
    rest = {name: value for name, value in own.items() if is_part and MASK not in str(value)}
    return {**rest, **{name: _in_full(own.get(name), value, is_part=True) for name, value in wanted.items()}}


def selects(value: Any, may_be_missing: bool = False) -> bool:
    """Whether a value is one that selects something: at no depth, it has an empty mapping or list, null or a blank text.

    With C(may_be_missing), it may have the latter two, because an earlier task would provide the value.
    """
    if isinstance(value, (Mapping, list)):
        values = value.values() if isinstance(value, Mapping) else value
        return bool(value) and all(selects(each, may_be_missing) for each in values)
    return may_be_missing or has_values(value)


def has_values(value: Any) -> bool:
    """Whether no value in it is null or blank, at any depth."""
    if isinstance(value, Mapping):
        return all(map(has_values, value.values()))
    if isinstance(value, list):
        return all(map(has_values, value))
    return value is not None and not (isinstance(value, str) and not value.strip())
