# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the event source, checked; a rulebook's variables may have made strings of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from ...module_utils._errors import InvalidOption
from ...module_utils._http.connection import Connection, connection_from
from ...module_utils._options import integer, not_blank, path_segment, seconds
from ...module_utils._timestamps import parse_age

ENVIRONMENT = {"base_url": "CLOUDDB_BASE_URL", "api_key": "CLOUDDB_API_KEY"}
DEFAULTS: dict[str, Any] = {
    "base_url": None,
    "api_key": None,
    "validate_certs": True,
    "ca_path": None,
    "allow_http": False,
    "api_timeout": 30.0,
    "project_ids": [],
    "actions": [],
    "statuses": [],
    "interval": 5.0,
    "max_interval": 30.0,
    "backfill": None,
    "state_file": None,
    "requests_per_minute": 600,
    "page_size": None,
    "feedback": False,
}


class ChangeOptions(NamedTuple):
    """What to follow and how; the source's documentation describes each of them."""

    connection: Connection
    project_ids: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    interval: float = 5.0
    max_interval: float = 30.0
    backfill: timedelta = timedelta(0)
    state_file: str | None = None
    requests_per_minute: int = 600
    page_size: int | None = None

    def wants_action(self, action: str | None) -> bool:
        return not self.actions or action in self.actions

    def wants_status(self, status: str) -> bool:
        return not self.statuses or status in self.statuses


def change_options(args: Mapping[str, Any], environment: Mapping[str, str]) -> ChangeOptions:
    """Check the arguments of the event source. Raises InvalidOption, which names the argument and never quotes the key."""
    for name in sorted(set(args) - set(DEFAULTS)):
        raise InvalidOption(name, f"there is no such argument; there are {', '.join(DEFAULTS)}")
    params: dict[str, Any] = {}
    for name, default in DEFAULTS.items():
        value = args.get(name)
        if value is None:
            value = environment.get(ENVIRONMENT.get(name, "")) or default
        params[name] = _converted(name, value)
    for name, variable in ENVIRONMENT.items():
        if not params[name]:
            raise InvalidOption(name, f"is missing; set it or the environment variable {variable}")
    params["interval"] = seconds(params, "interval", zero=False)
    if args.get("max_interval") is None:
        params["max_interval"] = max(params["interval"], params["max_interval"])
    elif seconds(params, "max_interval", zero=False) < params["interval"]:
        raise InvalidOption("max_interval", f"must not be less than interval, which is {params['interval']:g}")
    return ChangeOptions(
        # The next look is the next try.
        connection=connection_from({**params, "api_retries": 0}),
        project_ids=tuple(path_segment(params, "project_ids")),
        actions=tuple(not_blank(params, "actions")),
        statuses=tuple(not_blank(params, "statuses")),
        interval=params["interval"],
        max_interval=params["max_interval"],
        backfill=_age(params["backfill"]),
        state_file=not_blank(params, "state_file"),
        requests_per_minute=integer(params, "requests_per_minute", 1),
        page_size=integer(params, "page_size", 1),
    )


def _converted(name: str, value: Any) -> Any:
    """The value in the type that the argument has. Raises InvalidOption."""
    if name in ("validate_certs", "allow_http", "feedback"):
        truth = {
            "true": True,
            "yes": True,
            "on": True,
            "1": True,
            "false": False,
            "no": False,
            "off": False,
            "0": False,
        }
        if str(value).lower() not in truth:
            raise InvalidOption(name, "must be true or false")
        return truth[str(value).lower()]
    if name in ("interval", "max_interval", "api_timeout", "requests_per_minute", "page_size"):
        return _number(name, value)
    if name in ("project_ids", "actions", "statuses"):
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise InvalidOption(name, "must be a list of strings")
        return items
    if value is not None and not isinstance(value, str):
        raise InvalidOption(name, "must be a string")
    return value


def _number(name: str, value: Any) -> float | int | None:
    is_whole = name in ("requests_per_minute", "page_size")
    try:
        if isinstance(value, bool):
            raise ValueError
        return None if value is None else int(str(value)) if is_whole else float(value)
    except (TypeError, ValueError):
        raise InvalidOption(name, f"must be a {'whole ' if is_whole else ''}number") from None


def _age(text: str | None) -> timedelta:
    try:
        age = timedelta(0) if text is None else parse_age(text)
    except ValueError:
        age = None
    # Longer ones would lead to a time before the first.
    if age is None or age > timedelta(days=36500):
        raise InvalidOption("backfill", f"must be an age such as 90s, 30m, 24h, 7d or 2w, not '{text}'")
    return age
