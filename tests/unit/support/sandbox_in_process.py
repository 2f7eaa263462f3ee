# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox that the client calls without HTTP, in a third of the time. How it uses HTTP, other tests show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import requests
from requests.structures import CaseInsensitiveDict

from ansible_collections.clouddb.control.plugins.module_utils._http import attempt, transport
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import AttemptError
from ansible_collections.clouddb.control.tests.unit.support.sandbox import (
    BASE_PATH,
    Application,
    Sandbox,
    application_in_memory,
)

BASE_URL = "http://127.0.0.1:1" + BASE_PATH


@contextmanager
def sandbox_in_process(**seed: Any) -> Iterator[Sandbox]:
    """As C(running_sandbox), but without a server, for the code under test in this process."""
    with application_in_memory(**seed) as application:
        with mock.patch.object(transport, "run_attempt", partial(run_attempt, application)):
            yield Sandbox(BASE_URL, application)


def run_attempt(application: Application, work: partial[Any], seconds: float) -> tuple[int, Mapping[str, str], bytes]:
    """As the client's, but without a thread and without HTTP if the request is for this sandbox. Raises AttemptError."""
    _session, connection, request, _seconds = work.args
    if connection.base_url != BASE_URL:
        response: tuple[int, Mapping[str, str], bytes] = attempt.run_attempt(work, seconds)
        return response
    if seconds <= 0:
        raise AttemptError(None, was_sent=False)
    query = urlencode({name: value for name, value in (request.query or {}).items() if value is not None}, doseq=True)
    headers = {"user-agent": "clouddb.control/unit", "x-request-id": request.request_id}
    try:
        target = f"{BASE_PATH}{request.path}?{query}"
        answer = application.call(request.method, target, connection.api_key, request.body, **headers)
    except ConnectionError as error:
        raise AttemptError(requests.ConnectionError(error), was_sent=True) from None
    received = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
    return answer.status, CaseInsensitiveDict(received), answer.content
