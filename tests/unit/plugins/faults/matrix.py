# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What comes of each fault with each module: the one table that the tests hold, and that the page about faults shows.

C(python tests/unit/plugins/faults/matrix.py > docs/docsite/rst/fault_matrix.rst) writes the page.
"""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """Whether the task asks again, and the C(failure.kind) with which it fails if the fault stays; None: it succeeds even then."""

    asks_again: bool
    kind: str | None


def again(kind: str | None) -> Outcome:
    return Outcome(True, kind)


def at_once(kind: str | None) -> Outcome:
    return Outcome(False, kind)


class Row(NamedTuple):
    """One fault: words of the message that tells of it, the HTTP status, and the outcome in each column."""

    says: str
    status: int | None
    present: Outcome
    absent: Outcome
    reads: Outcome
    first_look: Outcome
    later_look: Outcome


def _broken(says: str, acted: bool) -> Row:
    """No response, or no whole one."""
    unreachable = again("unreachable")
    return Row(
        says,
        None,
        at_once("orphaned_key"),
        again(None if acted else "orphaned_key"),
        unreachable,
        unreachable,
        unreachable,
    )


def _not_understood(says: str, acted: bool = False) -> Row:
    """A whole response, of no use: to ask again would bring the same."""
    unexpected = at_once("unexpected_response")
    return Row(
        says,
        None,
        at_once("orphaned_key"),
        at_once(None if acted else "orphaned_key"),
        unexpected,
        unexpected,
        again("unexpected_response"),
    )


def _refused(status: int) -> Row:
    """The service says that it has not acted, and may do so later."""
    http_status = again("http_status")
    return Row(
        f"returned {status}",
        status,
        http_status,
        again("orphaned_key"),
        http_status,
        http_status,
        http_status,
    )


def _failed(status: int) -> Row:
    """The service, or what stands in front of it, failed, perhaps after it had acted."""
    return _refused(status)._replace(present=at_once("orphaned_key"))


def _final(status: int, kind: str = "http_status") -> Row:
    """The service says no."""
    no = at_once(kind)
    return Row(f"returned {status}", status, no, at_once("orphaned_key"), no, no, no)


LATE = "got no complete response from"
NOT_JSON = "its body is not valid JSON"

MATRIX: dict[str, Row] = {
    "connection refused": _broken("Connection refused", acted=False)._replace(present=again("unreachable")),
    "reset before the service acts": _broken("the connection broke", acted=False),
    "reset before the answer": _broken("the connection broke", acted=True),
    "reset within the body": _broken("the connection broke", acted=True),
    "body shorter than announced": _broken("the connection broke", acted=True),
    "silence longer than ``api_timeout``": _broken(LATE, acted=False),
    "silence after the service acted": _broken(LATE, acted=True),
    "headers that drip without end": _broken(LATE, acted=True),
    "a body that drips without end": _broken(LATE, acted=True),
    "a body without end": _not_understood("is larger than 64 MiB", acted=True),
    "a few bytes that unpack without end": _not_understood("is larger than 64 MiB", acted=True),
    "an empty body": _not_understood("its body is empty"),
    "HTML with 200": _not_understood("it is an HTML page, not JSON"),
    "malformed JSON": _not_understood(NOT_JSON, acted=True),
    "JSON of another shape": _not_understood("is not what the API describes"),
    "a body that is not UTF-8": _not_understood(NOT_JSON, acted=True),
    "302 to another origin": _final(302),
    "400": _final(400),
    "401": _final(401, "unauthorized"),
    "403": _final(403),
    "404": _final(404, "not_found")._replace(absent=at_once(None)),
    "409": _final(409),
    "422": _final(422),
    "423": _refused(423),
    "423, Retry-After in seconds": _refused(423),
    "423, Retry-After as a date": _refused(423),
    "423, Retry-After of years": _refused(423),
    "423, Retry-After without sense": _refused(423),
    "429": _refused(429),
    "429, Retry-After in seconds": _refused(429),
    "429, Retry-After as a date": _refused(429),
    "429, Retry-After of years": _refused(429),
    "429, Retry-After without sense": _refused(429),
    "500": _failed(500),
    "502": _failed(502),
    "503": _refused(503),
    "504": _failed(504),
}

COLUMNS = {
    "present": "``api_key``, the creation",
    "absent": "``api_key``, the revocation",
    "reads": "``api_key_info``, ``project_info``, ``operation_info``, ``projects``",
    "first_look": "``operation_wait``, at first",
    "later_look": "``operation_wait``, later",
}

PAGE = """\
..
  Copyright (c) clouddb.control contributors
  GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
  SPDX-License-Identifier: GPL-3.0-or-later

.. _ansible_collections.clouddb.control.docsite.fault_matrix:

What comes of each fault
========================

Each row is a fault that a request meets, each column says what the task then does. Every cell is tested over a real connection, once
with a fault that passes after the first time and once with one that stays.

**again**
  The request is sent again after a pause, up to ``api_retries`` times; a wait looks again until its ``timeout``. A fault that passes is
  not seen.
``a kind``
  If the fault stays, the task fails with this ``failure.kind``.
**succeeds**
  The key is gone, and that is what was wanted.

A creation is sent again only when the service surely did not act. Otherwise ``api_key`` lists the keys once more and fails with
``orphaned_key``: the message names the key that may have been made, and the way out. After a revocation that got no good answer it
looks whether the key is there; if it is, the task fails with ``orphaned_key`` and its id. The inventory plugin has no
``failure.kind``, only the message.

A pause that ``Retry-After`` asks for is kept to, up to a minute.

{table}"""


def page() -> str:
    """The page with the table."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    rows = [
        ("Fault", *COLUMNS.values()),
        *((fault, *(_cell(getattr(row, column)) for column in COLUMNS)) for fault, row in MATRIX.items()),
    ]
    for first, *others in rows:
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return PAGE.format(table="\n".join([*lines, ""]))


def _cell(outcome: Outcome) -> str:
    end = f"``{outcome.kind}``" if outcome.kind else "succeeds"
    return f"again, {end}" if outcome.asks_again else end


if __name__ == "__main__":
    print(page(), end="")
