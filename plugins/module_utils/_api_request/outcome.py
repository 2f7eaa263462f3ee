# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a request."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._operations.api import Operation
from .plan import Object


class Outcome(NamedTuple):
    """The outcome: C(before) and C(object) are the object before and after, C(operations) those to wait for."""

    changed: bool
    json: Any = None
    status: int | None = None
    object: Object | None = None
    before: Object | None = None
    operations: list[Operation] = []
    warnings: list[str] = []
