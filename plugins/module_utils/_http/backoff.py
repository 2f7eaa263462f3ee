# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long to pause before a retry: what Retry-After says, or exponential backoff. Keeps P4."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from .message import RawResponse

FIRST_BACKOFF = 0.5
MAX_BACKOFF = 20.0
# A rate limit counts by the minute, so with the default of api_retries the pauses of a request add up to more than one.
FIRST_BACKOFF_AT_RATE_LIMIT = 5.0
MAX_BACKOFF_AT_RATE_LIMIT = 30.0
MAX_RETRY_AFTER = 60.0
# Added to the Retry-After of a first 429. The tasks of a play run on many hosts at once, and all of them get the same one.
SPREAD_AT_RATE_LIMIT = 2.0


def pause_before_retry(attempts: int, response: RawResponse | None, now: datetime) -> float:
    """Seconds to pause after this number of attempts: what Retry-After says, or exponential backoff with full jitter.

    C(response) is that of the last attempt, if it had one. At a rate limit the backoff is longer. Other clients got the same
    Retry-After, and the limit would not let all of them through. So a short pause is added to it, after a second 429 the backoff.
    """
    is_rate_limited = response is not None and response.status == 429
    retry_after = retry_after_seconds(response.headers, now) if response else None
    if retry_after is None:
        return _backoff_at_rate_limit(attempts) if is_rate_limited else _backoff(attempts)
    if not is_rate_limited:
        return retry_after
    return retry_after + (
        random.uniform(0, SPREAD_AT_RATE_LIMIT) if attempts == 1 else _backoff_at_rate_limit(attempts)
    )


def _backoff(attempts: int) -> float:
    return random.uniform(0, min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** (attempts - 1)))


def _backoff_at_rate_limit(attempts: int) -> float:
    longest = min(MAX_BACKOFF_AT_RATE_LIMIT, FIRST_BACKOFF_AT_RATE_LIMIT * 2 ** (attempts - 1))
    return random.uniform(longest * 3 / 4, longest)


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """The pause that a Retry-After header asks for, at most MAX_RETRY_AFTER; None without a readable one.

    A date is compared with the response's Date, as the local clock, which says C(now), may be wrong.
    """
    value = headers.get("Retry-After")
    if value is None:
        return None
    try:
        if re.fullmatch(r"\s*[0-9]+\s*", value):
            return float(min(int(value), MAX_RETRY_AFTER))
        sent_at = parsedate_to_datetime(headers["Date"]) if "Date" in headers else now
        return min(max((parsedate_to_datetime(value) - sent_at).total_seconds(), 0.0), MAX_RETRY_AFTER)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
