# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A response of the service, and the checks that it has the shape that api.md describes. Keeps P8 and P11."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._untrusted import displayable, is_id
from .errors import UnexpectedResponse
from .message import Request

# The ids that are used in paths, file names, host names and events.
ID_FIELDS = ("id", "project_id", "branch_id", "endpoint_id", "parent_id")


class Response(NamedTuple):
    """The decoded JSON of a response, with what an error about it has to name."""

    json: Any
    request: Request
    attempts: int = 1
    status: int = 200

    def __repr__(self) -> str:
        return f"Response({self.request.method} {self.request.path}, ...)"  # without the JSON, which may hold a secret

    def unexpected(self, problem: str) -> UnexpectedResponse:
        """The error for a response that is not what api.md describes; C(problem) says why, without a full stop."""
        message = f"The response to {self.request.method} {self.request.path} is not what the API describes: {problem}."
        return UnexpectedResponse(message, self.request, self.attempts)

    def object(self, field: str | None = None, **types: type) -> dict[str, Any]:
        """The JSON object itself, or the one in its C(field), with fields of these types. Raises UnexpectedResponse."""
        value = self.json
        if not isinstance(value, dict):
            raise self.unexpected(f"a JSON object was expected, not {_json_type(value)}")
        if field is not None:
            value = value.get(field)
            if not isinstance(value, dict):
                raise self.unexpected(f"its field '{field}' should be an object, not {_json_type(value)}")
        return self.require(value, **types) if types else value

    def items(self, field: str | None, **types: type) -> list[dict[str, Any]]:
        """The array in C(field) (None: the response itself), whose items are objects with fields of these types.

        Raises UnexpectedResponse.
        """
        value = self.json if field is None else self.object().get(field)
        place = "the response" if field is None else f"its field '{field}'"
        if not isinstance(value, list):
            raise self.unexpected(f"{place} should be an array, not {_json_type(value)}")
        for item in value:
            self.require(item, **types)
        return value

    def require(self, item: Any, **types: type) -> dict[str, Any]:
        """The item, if it is an object whose fields named here have these types, and whose ids are ids.

        Ids that are not named here may be missing, null or empty. Raises UnexpectedResponse.
        """
        if not isinstance(item, dict):
            raise self.unexpected(f"an object was expected, not {_json_type(item)}")
        for field, wanted in types.items():
            value = item.get(field)
            if _json_type(value) != _TYPE_NAMES[wanted]:
                raise self.unexpected(f"the field '{field}' should be {_TYPE_NAMES[wanted]}, not {_json_type(value)}")
        for field in ID_FIELDS:
            value = item.get(field)
            # Those of keys are integers.
            if (value or field in types) and _json_type(value) != _TYPE_NAMES[int]:
                self.require_id(value)
        return item

    def require_id(self, value: Any) -> str:
        """The value, if it is an id. Raises UnexpectedResponse."""
        if not is_id(value):
            text = f"'{displayable(value, 100)}'" if isinstance(value, str) else _json_type(value)
            raise self.unexpected(f"an id was expected, not {text}")
        return str(value)


_TYPE_NAMES = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def _json_type(value: Any) -> str:
    return _TYPE_NAMES[type(value)]
