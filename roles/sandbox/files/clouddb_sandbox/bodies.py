# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bodies of requests have in common: nothing is taken for a number or a text that is none."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

# What fits into the database.
LARGEST_INTEGER = 2**63 - 1


HeaderValue = Annotated[str, Field(pattern=r"^([\x21-\x7e\x80-\xff]+([ \t]+[\x21-\x7e\x80-\xff]+)*)?$")]


class Body(BaseModel):
    """Of the API: unknown fields do no harm."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def is_json(cls, body: Any) -> Any:
        """Python's parser also takes NaN, Infinity and halves of characters. To JSON, 7.0 is an integer."""
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, default=str)
        text.encode()
        return json.loads(text, parse_float=number)


def number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


class ControlBody(Body):
    """Of the sandbox's own endpoints: an unknown field is a mistake in a test."""

    model_config = ConfigDict(extra="forbid")
