# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors, logs and descriptions have no key in any encoding. The integration target secrets checks complete runs."""

from __future__ import annotations

import json
import re
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

try:
    from ansible.module_utils._internal import _logging as logging
except ImportError:  # ansible-core up to 2.21
    from ansible.module_utils import basic as logging

from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.module_utils._http.errors import StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.message import RawResponse, Request
from ansible_collections.clouddb.control.plugins.module_utils._http.response import Response
from ansible_collections.clouddb.control.plugins.module_utils._keys.keys import CreatedKey
from ansible_collections.clouddb.control.plugins.module_utils._rotation.deployment import Found, NewKey
from ansible_collections.clouddb.control.plugins.module_utils._secrets import encodings
from ansible_collections.clouddb.control.plugins.modules import api_request
from ansible_collections.clouddb.control.tests.unit.support.each_module import EACH_MODULE, name_of
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply

SPECIAL_KEY = """odd"key\\with%all+kinds/of='signs'-0123456789"""


def assert_no_key(text: str) -> None:
    assert not [encoding for encoding in encodings(SPECIAL_KEY) if encoding in text]
    assert "0123456789" not in text


@pytest.mark.parametrize("encoding", sorted(encodings(SPECIAL_KEY)))
def test_echoed_keys_are_redacted(serve: Serve, encoding: str) -> None:
    echo = reply({"message": f"what is {encoding}?", "code": encoding}, 401)
    served = serve(echo, api_key=SPECIAL_KEY, api_retries=0)
    with pytest.raises(StatusError) as error:
        served.client.get("projects")
    assert error.value.details["message"] == "what is ********?"
    assert_no_key(str(error.value.as_result()))


def test_neither_client_quotes_the_key_of_the_other(serve: Serve) -> None:
    other = "other-key-0123456789"
    echo = reply({"message": f"{SPECIAL_KEY} {other}", "name": f"{SPECIAL_KEY} {other}"}, 500)
    served = serve(echo, echo, api_key=SPECIAL_KEY, api_retries=0)
    for client in (served.client.with_api_key(other), served.client):
        with pytest.raises(StatusError) as error:
            client.get("projects")
        assert error.value.details["message"] == "******** ********"
        assert_no_key(str(error.value.as_result()))


def log_of(monkeypatch: pytest.MonkeyPatch, journal: bool) -> list[Any]:
    """What modules send to the system's log from now on."""
    logged: list[Any] = []
    sending = SimpleNamespace(send=lambda *message, **fields: logged.append((message, fields)))
    monkeypatch.setattr(logging, "has_journal", journal)
    monkeypatch.setattr(logging, "journal", sending, raising=False)
    monkeypatch.setattr(logging.syslog, "syslog", lambda *message: logged.append(message))
    return logged


@pytest.mark.parametrize("journal", [False, True], ids=["syslog", "journal"])
def test_syslog_has_no_secret_of_a_body(monkeypatch: pytest.MonkeyPatch, journal: bool) -> None:
    logged = log_of(monkeypatch, journal)
    body = {"role": {"password": "pass-0123456789", "note": "postgres://owner:other-0123456789@host/db"}}
    # Refused before anything is sent.
    run_main(api_request, {"base_url": "ftp://host", "api_key": SPECIAL_KEY, "path": "projects", "body": body})
    assert "postgres://owner:********@host/db" in str(logged)
    assert_no_key(str(logged))


@pytest.mark.parametrize(("module", "options"), EACH_MODULE, ids=[name_of(module) for module, _options in EACH_MODULE])
def test_syslog_has_options_but_not_the_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, module: ModuleType, options: dict[str, Any]
) -> None:
    logged = log_of(monkeypatch, journal=False)
    served = serve(reply({"message": "no"}, 403))

    run_main(module, {"base_url": served.service.base_url, "api_key": SPECIAL_KEY, **options})

    assert served.requests[0].headers["Authorization"] == f"Bearer {SPECIAL_KEY}"
    # By Ansible, or by the module if its options may hold other secrets.
    assert re.search(r"api_key=(NOT_LOGGING_PARAMETER|\$REDACTED\$|\*{8})", str(logged))
    assert_no_key(str(logged))
    assert_no_key(json.dumps(str(logged)))


@pytest.mark.parametrize(
    "holder",
    [
        Connection("https://control.example.com", SPECIAL_KEY),
        CreatedKey(SPECIAL_KEY, {"id": 7}),
        NewKey(7, SPECIAL_KEY, [], {}),
        Found(SPECIAL_KEY, None),
        RawResponse(200, {}, SPECIAL_KEY.encode(), 1, False),
        Response({"key": SPECIAL_KEY}, Request("POST", "/api_keys", "request")),
    ],
    ids=lambda holder: type(holder).__name__,
)
def test_what_holds_a_secret_does_not_show_it(holder: object) -> None:
    assert_no_key(f"{holder} {[holder]}")
