# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page from which a list goes on after a request that failed, so that a long list is completed during an outage too."""

from __future__ import annotations

from typing import NamedTuple

from .._errors import LOCKED, REFUSED_STATUSES, RequestFailed, StatusError

# After these 4xx, the same request may succeed later.
RETRIED_STATUSES = frozenset({408, LOCKED, 429})
# A page that has failed this many times may have an invalid cursor.
MAX_FAILURES = 10


class ListPosition(NamedTuple):
    """The next page of a list: its cursor, None for the first page, and how often it has failed, other than by a refusal."""

    cursor: str | None = None
    failures: int = 0

    def after_failure(self, error: RequestFailed) -> ListPosition:
        """The same page; the first one if the service rejects this one, or it has failed MAX_FAILURES times."""
        # A request that the service refuses for now says nothing about the cursor.
        if isinstance(error, StatusError) and error.status in REFUSED_STATUSES:
            return self
        failures = self.failures + 1
        return ListPosition() if is_rejected(error) or failures == MAX_FAILURES else self._replace(failures=failures)


def is_rejected(error: RequestFailed) -> bool:
    """Whether the same request will be rejected again, as when its cursor has expired."""
    return isinstance(error, StatusError) and 400 <= error.status < 500 and error.status not in RETRIED_STATUSES
