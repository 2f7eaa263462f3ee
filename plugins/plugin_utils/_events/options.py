# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the event source, converted and checked. Keeps P11.

Arguments that a rulebook takes from its variables may be strings. They are converted here, as the Python that runs
ansible-rulebook need not have ansible-core.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Callable, NamedTuple

from ...module_utils._errors import InvalidOption
from ...module_utils._http.connection import CONNECTION_OPTIONS, Connection, connection_from
from ...module_utils._lists import no_such
from ...module_utils._operations.status import selected_actions, selected_statuses
from ...module_utils._options import identifier, integer, not_blank
from ...module_utils._projects import ORGANIZATION_OPTIONS, checked_query
from ...module_utils._timestamps import MAX_AGE, duration

BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _path(value: Any) -> str:
    """The path, expanded as Ansible does for modules."""
    return os.path.expanduser(os.path.expandvars(_string(value)))


def _strings(value: Any) -> list[str]:
    return list(map(_string, [value] if isinstance(value, str) else value))


# Each type, as Ansible calls it: what a value must be, and its conversion, which raises an error for anything else.
TYPES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bool": ("true or false", lambda value: BOOLEANS[str(value).lower()]),
    "dict": ("a dictionary", lambda value: {**value}),
    "float": ("a number", lambda value: float(str(value))),
    "int": ("an integer", lambda value: int(str(value))),
    "list": ("a list of strings", _strings),
    "path": ("a string", _path),
    "raw": ("any value", lambda value: value),
    "str": ("a string", _string),
}


# As in an argument spec: their types, their defaults, and the environment variables that are used if they are not set.
ARGUMENTS: dict[str, dict[str, Any]] = {
    **{name: option for name, option in CONNECTION_OPTIONS.items() if name != "api_retries"},
    "project_ids": {"type": "list"},
    **ORGANIZATION_OPTIONS,
    "query": {"type": "dict"},
    "actions": {"type": "list"},
    "statuses": {"type": "list"},
    "interval": {"type": "raw", "default": 5.0},
    "max_interval": {"type": "raw", "default": 30.0},
    "backfill": {"type": "raw", "default": 0},
    "state_file": {"type": "path"},
    "requests_per_minute": {"type": "int", "default": 600},
    "page_size": {"type": "int"},
}


class SourceOptions(NamedTuple):
    """The checked arguments, described in the event source's documentation; C(interval) and C(max_interval) in seconds."""

    connection: Connection
    project_ids: tuple[str, ...]
    query: dict[str, Any]
    actions: tuple[str, ...]
    statuses: tuple[str, ...]
    interval: float
    max_interval: float
    backfill: timedelta
    state_file: str | None
    requests_per_minute: int
    page_size: int | None
    warnings: list[str]


def is_selected(value: str | None, selected: tuple[str, ...]) -> bool:
    """Whether an argument that is a list selects this value; an empty one selects all."""
    return not selected or value in selected


def source_options(args: Mapping[str, Any]) -> SourceOptions:
    """Convert and check the arguments of the event source; one that is null counts as not given.

    Raises InvalidOption, which names the argument and never quotes the key.
    """
    for name in sorted(set(args) - set(ARGUMENTS)):
        raise InvalidOption(name, no_such("argument", str(name), ARGUMENTS))
    params = {name: _value(name, args.get(name)) for name in ARGUMENTS}
    interval = duration(params, "interval", zero=False)
    actions, unknown_actions = selected_actions(params, "actions")
    statuses, unknown_statuses = selected_statuses(params, "statuses")
    return SourceOptions(
        # A request that fails is not retried: the next poll is the next attempt.
        connection=connection_from({**params, "api_retries": 0}),
        project_ids=tuple(identifier(params, "project_ids") or ()),
        query=checked_query(params),
        actions=actions,
        statuses=statuses,
        interval=interval,
        max_interval=max(interval, duration(params, "max_interval", zero=False)),
        backfill=timedelta(seconds=duration(params, "backfill", largest=MAX_AGE)),
        state_file=not_blank(params, "state_file"),
        requests_per_minute=integer(params, "requests_per_minute", 1),
        page_size=integer(params, "page_size", 1),
        warnings=unknown_actions + unknown_statuses,
    )


def _value(name: str, value: Any) -> Any:
    """The argument's value in its own type, or else that of its environment variable, or else its default."""
    argument = ARGUMENTS[name]
    if value is None and "fallback" in argument:
        of_environment, variables = argument["fallback"]
        value = of_environment(*variables)
    if value is None:
        return argument.get("default")
    if value == []:
        # A template can be empty by mistake.
        raise InvalidOption(name, "is empty. Specify at least one value, or omit it to select all.")
    wanted, convert = TYPES[argument["type"]]
    try:
        return convert(value)
    except (KeyError, OverflowError, TypeError, ValueError):
        raise InvalidOption(name, f"must be {wanted}") from None
