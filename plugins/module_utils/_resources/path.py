# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The path of a request: checked segments, of which some may be placeholders for fields of a resource. Keeps P8."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import InvalidOption
from .._untrusted import is_id

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_WITHOUT_VALUE = ("", "None")


def parse_path(option: str, text: str, allow_missing: bool = False) -> tuple[str, ...]:
    """The segments of a path below base_url, not encoded. Raises InvalidOption.

    A segment without a value comes from a variable without one. With C(allow_missing) it is accepted: in check mode, the
    resource that an earlier task would create has no id.
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", text):
        raise InvalidOption(
            option, "must be a path below base_url, such as projects/ID/branches, without scheme and host"
        )
    if prefix := re.match(r"/?(api/v\d+)(/|$)", text.strip()):
        raise InvalidOption(option, f"must be a path below base_url. Leave out /{prefix[1]}, which base_url ends with.")
    if "?" in text or "#" in text:
        raise InvalidOption(option, "must not contain '?' or '#'. Use query for the query parameters.")
    if not text.isprintable() or "\\" in text:
        raise InvalidOption(option, "must not contain control characters or backslashes")
    segments = tuple(text.strip().removeprefix("/").split("/"))
    if {".", ".."} & set(segments):
        raise InvalidOption(option, "must not contain the segments '.' and '..'")
    if not allow_missing and not is_complete(segments):
        raise InvalidOption(option, f"'{text}' has an empty segment. A variable in it probably has no value.")
    return segments


def is_complete(segments: Sequence[str]) -> bool:
    """Whether every segment has a value."""
    return not any(segment.strip() in _WITHOUT_VALUE for segment in segments)


def list_segments(segments: tuple[str, ...]) -> tuple[str, ...]:
    """The path of the list that a resource belongs to: the path without a placeholder at its end."""
    return segments[:-1] if _PLACEHOLDER.fullmatch(segments[-1]) else segments


def has_placeholder(segments: Sequence[str]) -> bool:
    """Whether a segment stands for a field of the resource, such as C({id})."""
    return any(_PLACEHOLDER.fullmatch(segment) for segment in segments)


def fill(segments: Sequence[str], found: Mapping[str, Any]) -> tuple[str, ...]:
    """The segments with the resource's fields in place of the placeholders. Raises InvalidOption for one that it lacks."""
    return tuple(_value(segment, found) for segment in segments)


def _value(segment: str, found: Mapping[str, Any]) -> str:
    placeholder = _PLACEHOLDER.fullmatch(segment)
    if not placeholder:
        return segment
    value = found.get(placeholder[1])
    is_number = isinstance(value, int) and not isinstance(value, bool)
    is_text = isinstance(value, str) and value.strip() and value not in (".", "..")
    if not (is_number or is_text):
        fields = ", ".join(sorted(found))
        raise InvalidOption(
            "path", f"the resource that was found has no text or number for {segment}. Its fields: {fields}."
        )
    return str(value)


def project_of(segments: Sequence[str]) -> str | None:
    """The project that the path is about (api.md, GET /projects/{project_id}/operations); None without one."""
    return segments[1] if len(segments) > 1 and segments[0] == "projects" and is_id(segments[1]) else None
