# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters that several endpoints share."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query, Request

from ..resources import Error

Cursor = Annotated[str | None, Query(description="the cursor of the previous page")]


async def page_limit(request: Request) -> int | None:
    limit: int | None = request.state.page_limit
    return limit


ForcedLimit = Annotated[int | None, Depends(page_limit)]


def page_size(limit: int, forced: int | None) -> int:
    """The size of a page: what was asked for, unless a fault makes it smaller."""
    return limit if forced is None else min(limit, forced)


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of an endpoint, for the OpenAPI document."""
    return {status: {"model": Error} for status in (401, *statuses)}
