# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox that the code under test calls without HTTP, in a third of the time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import RemoteDisconnected
from typing import Any
from unittest import mock

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from ansible_collections.clouddb.control.plugins.module_utils._http import attempt, session, transport
from ansible_collections.clouddb.control.plugins.module_utils._http.attempt import AttemptError
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.tests.unit.support.sandbox import (
    BASE_PATH,
    Application,
    Sandbox,
    application_in_memory,
)

ADDRESS = "http://127.0.0.1:1"


@contextmanager
def sandbox_in_process(**seed: Any) -> Iterator[Sandbox]:
    """As C(running_sandbox), but without a server: only the code under test in this process can use it, in a third of the time."""
    with application_in_memory(**seed) as application:
        adapter = SandboxAdapter(application)

        def open_session(connection: Connection) -> requests.Session:
            opened = session.open_session(connection)
            opened.mount(ADDRESS, adapter)
            return opened

        with mock.patch.multiple(transport, open_session=open_session, run_attempt=run_attempt):
            yield Sandbox(ADDRESS + BASE_PATH, application)


def run_attempt(work: partial[Any], seconds: float) -> Any:
    """As the client's, but without a thread for this sandbox, which does not hang. Raises AttemptError."""
    connection: Connection = work.args[1]
    if not connection.base_url.startswith(ADDRESS):
        return attempt.run_attempt(work, seconds)
    if seconds <= 0:
        raise AttemptError(None, was_sent=False)
    try:
        return work()
    except Exception as error:
        raise AttemptError(error, was_sent=True) from None


class SandboxAdapter(HTTPAdapter):
    """Sends the requests of a session to the application of a sandbox."""

    def __init__(self, application: Application):
        super().__init__()
        self.application = application

    def send(self, request: requests.PreparedRequest, *_arguments: Any, **_options: Any) -> requests.Response:
        body = request.body or b""
        headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
        try:
            answer = self.application.send(
                request.method or "", request.path_url, headers, body if isinstance(body, bytes) else body.encode()
            )
        except ConnectionError:
            cause = RemoteDisconnected("Remote end closed connection without response")
            raise requests.ConnectionError(cause, request=request) from None
        response = HTTPResponse(
            io.BytesIO(answer.content),
            {name.decode(): value.decode("latin-1") for name, value in answer.headers},
            answer.status,
            preload_content=False,
            request_method=request.method,
        )
        return self.build_response(request, response)
