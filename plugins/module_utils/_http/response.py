# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A response of the service, and the checks that it has the shape that api.md describes. Keeps P8 and P11."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._errors import UnexpectedResponse
from .._untrusted import displayable, is_id

# The ids that are used in paths, file names, host names and events.
ID_FIELDS = ("id", "project_id", "branch_id", "endpoint_id")


class Response(NamedTuple):
    """The decoded JSON of a response, with what an error about it has to name."""

    json: Any
    method: str
    path: str
    attempts: int
    request_id: str
    status: int = 200

    def __repr__(self) -> str:
        return f"Response({self.method} {self.path}, ...)"  # without the JSON, which may hold a secret

    def unexpected(self, problem: str) -> UnexpectedResponse:
        """The error for a response that is not what api.md describes; C(problem) says why, without a full stop."""
        message = f"The response to {self.method} {self.path} is not what the API describes: {problem}."
        return UnexpectedResponse(message, self.method, self.path, self.attempts, self.request_id)

    def object(self, field: str | None = None) -> dict[str, Any]:
        """The JSON object itself, or the one in its C(field). Raises UnexpectedResponse."""
        value = self.json
        if not isinstance(value, dict):
            raise self.unexpected(f"a JSON object was expected, not {_json_type(value)}")
        if field is not None:
            value = value.get(field)
            if not isinstance(value, dict):
                raise self.unexpected(f"its field '{field}' should be an object, not {_json_type(value)}")
        return value

    def items(self, field: str | None, **types: type) -> list[dict[str, Any]]:
        """The array in C(field) (None: the response itself), whose items are objects with fields of these types.

        Raises UnexpectedResponse.
        """
        value = self.json if field is None else self.object().get(field)
        place = "the response" if field is None else f"its field '{field}'"
        if not isinstance(value, list):
            arrays = (
                [name for name, array in self.json.items() if isinstance(array, list)]
                if isinstance(self.json, dict)
                else []
            )
            others = f". It has these arrays: {', '.join(map(displayable, arrays))}" if arrays else ""
            raise self.unexpected(f"{place} should be an array, not {_json_type(value)}{others}")
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
            # Python counts true as an integer, JSON does not.
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
                raise self.unexpected(f"the field '{field}' should be {_TYPE_NAMES[wanted]}, not {_json_type(value)}")
        for field in ID_FIELDS:
            value = item.get(field)
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if not is_number and (field in types or value):
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
