# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of each task after each error: the tests check this table, and the page shows it.

docs/site/build.py writes the page.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple


class Expected(NamedTuple):
    """Whether the request is retried, and the C(failure.kind) if the error is permanent; None: the task succeeds nevertheless."""

    is_retried: bool
    kind: str | None


retried, not_retried = partial(Expected, True), partial(Expected, False)
SUCCEEDS, UNKNOWN_OUTCOME = not_retried(None), not_retried("unknown_outcome")
# The other statuses that say that the request was not processed: it was rejected.
REJECTED = (402, 405, 407, 410, 411, 412, 413, 414, 415, 417, 421, 425, 426, 428, 431, 451)
# The rows of all statuses that have no row of their own, each tested in full with the first of its statuses.
GROUPS: dict[str, tuple[int, ...]] = {
    ", ".join(map(str, REJECTED)): REJECTED,
    "other 3xx, request processed": (303, *range(300, 400)),
    "other 4xx, request processed": (499, *range(400, 500)),
    "600 to 999, request processed": (600, *range(601, 1000)),
}
# The values of the header by how the page describes them.
RETRY_AFTER = {
    "in seconds": "7",
    "as a date": "Sat, 21 Nov 2026 08:00:30 GMT",
    "of 100 years": str(100 * 365 * 86400),
    "malformed": "soon",
}


class Row(NamedTuple):
    """One error: a part of the message, the HTTP status, and what is expected of the task in each column."""

    message: str
    status: int | None
    present: Expected
    absent: Expected
    create: Expected
    delete: Expected
    reads: Expected
    first_poll: Expected
    later_poll: Expected


def _row(
    message: str, status: int | None, present: Expected, absent: Expected, change: Expected, read: Expected
) -> Row:
    """An error after which api_request creates and deletes alike, and all requests that read have the same result."""
    return Row(message, status, present, absent, change, change, read, read, read)


def _broken_response(message: str, processed: bool) -> Row:
    """No complete response, although the request may have been C(processed)."""
    absent, change = (None, None) if processed else ("orphaned_key", "unknown_outcome")
    orphaned, unreachable = not_retried("orphaned_key"), retried("unreachable")
    row = _row(message, None, orphaned, retried(absent), not_retried(change), unreachable)
    return row._replace(delete=retried(change))


def _unexpected_response(message: str, processed: bool = False) -> Row:
    """A complete response that is not what the API describes: a retry would get the same."""
    absent, change = (None, None) if processed else ("orphaned_key", "unknown_outcome")
    orphaned, kind = not_retried("orphaned_key"), "unexpected_response"
    row = _row(message, None, orphaned, not_retried(absent), not_retried(change), not_retried(kind))
    return row._replace(later_poll=retried(kind))


def _refused(status: int) -> Row:
    """A status that says that the request was not processed, and may be later."""
    failed = retried("http_status")
    return _row(f"returned {status}", status, failed, retried("orphaned_key"), failed, failed)


def _server_error(status: int, processed: bool) -> Row:
    """A transient status, although the request may have been C(processed)."""
    failed = retried("http_status")
    return _broken_response(f"returned {status}", processed)._replace(
        status=status, reads=failed, first_poll=failed, later_poll=failed
    )


def _unclear(status: int) -> Row:
    """A status that a retry would not change, after which the request may have been processed."""
    present = not_retried("orphaned_key")
    return _permanent(status)._replace(present=present, absent=SUCCEEDS, create=SUCCEEDS, delete=SUCCEEDS)


def _permanent(status: int, kind: str = "http_status") -> Row:
    """A status that a retry would not change."""
    failed = not_retried(kind)
    return _row(f"returned {status}", status, failed, not_retried("orphaned_key"), failed, failed)


TIMED_OUT = "got no complete response from"
BROKE = "the connection broke"
NOT_JSON = "its body is not valid JSON"

MATRIX: dict[str, Row] = {
    "connection refused": _broken_response("Connection refused", processed=False)._replace(
        present=retried("unreachable"), create=retried("unreachable"), delete=retried("unreachable")
    ),
    "reset before the request is processed": _broken_response(BROKE, processed=False),
    "reset before the response": _broken_response(BROKE, processed=True),
    "cut within the headers": _broken_response(BROKE, processed=True),
    "reset within the body": _broken_response(BROKE, processed=True),
    "body shorter than ``Content-Length``": _broken_response(BROKE, processed=True),
    "no response within ``api_timeout``, request not processed": _broken_response(TIMED_OUT, processed=False),
    "no response within ``api_timeout``, request processed": _broken_response(TIMED_OUT, processed=True),
    "headers sent byte by byte without end": _broken_response(TIMED_OUT, processed=True),
    "body sent byte by byte without end": _broken_response(TIMED_OUT, processed=True),
    "empty body": _unexpected_response("its body is empty", processed=True),
    "HTML with 200": _unexpected_response("it is an HTML page, not JSON"),
    "malformed JSON": _unexpected_response(NOT_JSON, processed=True),
    "JSON of another shape": _unexpected_response("is not what the API describes", processed=True),
    "body that is not UTF-8": _unexpected_response(NOT_JSON, processed=True),
    "302 to another origin": _permanent(302)._replace(
        present=not_retried("orphaned_key"), create=UNKNOWN_OUTCOME, delete=UNKNOWN_OUTCOME
    ),
    "400": _permanent(400),
    "401": _permanent(401, "unauthorized"),
    "403": _permanent(403),
    "404": _permanent(404, "not_found")._replace(absent=SUCCEEDS, delete=SUCCEEDS, first_poll=retried("not_found")),
    "409": _permanent(409),
    "422": _permanent(422),
    # The project has unfinished operations.
    **dict.fromkeys(
        ["423", *(f"423, Retry-After {how}" for how in RETRY_AFTER)],
        _refused(423)._replace(create=retried("locked"), delete=retried("locked")),
    ),
    **dict.fromkeys(["429", *(f"429, Retry-After {how}" for how in RETRY_AFTER)], _refused(429)),
    "503 with ``message`` and ``code``": _refused(503),
    "503, Retry-After in seconds": _refused(503),
    "any other 503, request not processed": _server_error(503, processed=False),
    "any other 503, request processed": _server_error(503, processed=True),
    "408, other 5xx, request not processed": _server_error(502, processed=False),
    "408, other 5xx, request processed": _server_error(522, processed=True),
    **{
        name: _permanent(first) if (first, *others) == REJECTED else _unclear(first)
        for name, (first, *others) in GROUPS.items()
    },
}


# The heading of each column of the page, by field of Row.
COLUMNS = {
    "present": "``api_key``, POST",
    "absent": "``api_key``, DELETE",
    "create": "``api_request`` with ``find``, POST",
    "delete": "``api_request`` with ``find``, DELETE",
    "reads": "``api_key_info``, ``api_key_policy`` (list), ``project_info``, ``operation_info``, ``projects``",
    "first_poll": "``operation_wait``, first poll",
    "later_poll": "``operation_wait``, later poll",
}

PAGE = """\
..
  Copyright (c) clouddb.control contributors
  SPDX-License-Identifier: GPL-3.0-or-later

.. _ansible_collections.clouddb.control.docsite.fault_matrix:

Failure modes
=============

The table lists how each task handles each error of the network or of the service. The tests of the collection check every cell over a
real connection: once with a transient error, which occurs only once, and once with a permanent one.

**retried**
  The request is retried after a pause, up to ``api_retries`` times. ``operation_wait`` polls again until its ``timeout``. A transient
  error does not fail the task.
``a kind``
  If the error is permanent, the task fails with this ``failure.kind``. Without **retried**, it fails at the first error.
**succeeds**
  The task succeeds, because the key or the resource no longer exists.

A request to create a key is retried only if the service cannot have processed it: the request was not sent, or the status shows that the
service rejected it. The table contains all statuses that do. A 503 shows it only if its body is an error of the service, which has the
texts ``message`` and ``code``, or with ``Retry-After`` and a body that is not HTML. Gateways send any other 503, even when the connection
to the service broke after they had passed the request on. After any other status, ``api_key`` lists the keys again and fails with
``orphaned_key``, because a gateway may send it when the service has created the key. The message names the key that may have been created,
and how to revoke it.

In the same cases ``api_request`` with ``find`` observes the resource for up to 30 seconds. If the resource becomes what the task asks for,
the task succeeds with a warning, and otherwise it fails with ``unknown_outcome``. After 423 it waits for the operations of the project.

If a revocation fails, ``api_key`` checks whether the key still exists. If it does, the task fails with ``orphaned_key`` and the id of
the key. If the response to the revocation of the task's own key is lost, the service rejects that key with 401. The task then fails with
``orphaned_key``. Run it again with another key.

All modules treat an error of their first request like those in the column of the lists. If the service returns 404 for the value of
``project``, it is looked up as a name.

The inventory plugin ``projects`` fails with a message only, without ``failure.kind``.

A list without ``page_size`` asks for pages as large as the service takes. If the service refuses the first one with 400 or 422, it is requested
again in smaller pages, and at last without a size. The table shows lists with ``page_size``.

A pause requested by ``Retry-After`` is honored, up to one minute.

{table}"""


def page() -> str:
    """The page with the table."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    rows = [
        ("Error", *COLUMNS.values()),
        *((error, *(_cell(getattr(row, column)) for column in COLUMNS)) for error, row in MATRIX.items()),
    ]
    for first, *others in rows:
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return PAGE.format(table="\n".join([*lines, ""]))


def _cell(expected: Expected) -> str:
    result = f"``{expected.kind}``" if expected.kind else "succeeds"
    return f"retried, {result}" if expected.is_retried else result
