# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors, logs and descriptions have no key in any encoding. The integration target secrets checks complete runs."""

from __future__ import annotations

import json
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import requests
from ansible.module_utils import basic

from ansible_collections.clouddb.control.plugins.module_utils._errors import ServiceUnreachable, StatusError
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import encodings
from ansible_collections.clouddb.control.plugins.module_utils._http.session import RawResponse
from ansible_collections.clouddb.control.plugins.module_utils._keys.api import CreatedKey, OrphanedKey, create_key
from ansible_collections.clouddb.control.tests.unit.support.each_module import EACH_MODULE, name_of
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.scripted_client import Serve
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import HANG_UP, reply

SPECIAL_KEY = """odd"key\\with%all+kinds/of='signs'-0123456789"""


def assert_no_key(text: str) -> None:
    assert not [encoding for encoding in encodings(SPECIAL_KEY) if encoding in text]
    assert "0123456789" not in text


def fail_quoting_the_request(*args: Any, **kwargs: Any) -> Any:
    """Fail as an unexpected error of a library would, with a message that quotes the request."""
    request: requests.PreparedRequest = args[1]
    raise RuntimeError(
        f"can't send {request.headers} {json.dumps(dict(request.headers))} to {request.url}?{requests.compat.quote(SPECIAL_KEY)}"
    )


def test_unexpected_library_errors_are_redacted(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests.Session, "send", fail_quoting_the_request)
    with pytest.raises(ServiceUnreachable) as error:
        serve(api_key=SPECIAL_KEY).client.get("projects")
    assert_no_key(str(error.value.as_result()))
    # It is not retried, and no connection was used.
    assert (error.value.transient, error.value.may_have_acted) == (False, False)


def test_an_unexpected_error_after_the_post_names_the_orphaned_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(reply({"id": 7}), reply([{"id": 7, "name": "deploy"}]))
    send = requests.Session.send

    def crash_after_post(session: Any, request: requests.PreparedRequest, **kwargs: Any) -> Any:
        response = send(session, request, **kwargs)
        return fail_quoting_the_request(session, request) if request.method == "POST" else response

    monkeypatch.setattr(requests.Session, "send", crash_after_post)
    with pytest.raises(OrphanedKey, match="Revoke it with state=absent and id=7"):
        create_key(served.client, "deploy", [])


def test_repr_of_a_response_has_no_secret(serve: Serve) -> None:
    response = serve(reply({"id": 7, "key": SPECIAL_KEY})).client.post("api_keys", body={})
    assert_no_key(repr(response) + repr(RawResponse(200, {}, SPECIAL_KEY.encode(), 1, False)))


def test_no_error_refers_to_a_request_with_the_key(serve: Serve) -> None:
    with pytest.raises(ServiceUnreachable) as error:
        serve(HANG_UP, api_retries=0).client.get("projects")
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


@pytest.mark.parametrize("encoding", sorted(encodings(SPECIAL_KEY)))
def test_echoed_keys_are_redacted(serve: Serve, encoding: str) -> None:
    served = serve(
        reply({"message": f"what is {encoding}?", "code": encoding}, 401), api_key=SPECIAL_KEY, api_retries=0
    )
    with pytest.raises(StatusError, match=r"what is \*{8}\?") as error:
        served.client.get("projects")
    assert_no_key(str(error.value.as_result()))


def test_errors_do_not_quote_other_keys_of_the_task(serve: Serve) -> None:
    created, read, short = "created-0123456789", "read-0123456789", "short"
    refusal = {"message": f"not {created}, {read} or {short}", "code": created}
    served = serve(reply({"id": 7, "key": created}, 201), reply(refusal, 500), api_retries=0)
    create_key(served.client, "deploy", [])
    served.client.with_api_key(read)
    served.client.with_api_key(short)
    with pytest.raises(StatusError, match=r"not \*{8}, \*{8} or short") as error:
        served.client.delete("api_keys", 7)
    assert created not in str(error.value.as_result())


def test_repr_of_a_created_key_has_no_secret() -> None:
    created = CreatedKey(SPECIAL_KEY, {"id": 7, "name": "deploy"})
    assert repr(created) == "CreatedKey({'id': 7, 'name': 'deploy'})"
    assert_no_key(f"{created} {[created]}")


@pytest.mark.parametrize(("module", "options"), EACH_MODULE, ids=[name_of(module) for module, _options in EACH_MODULE])
@pytest.mark.parametrize("journal", [False, True], ids=["syslog", "journal"])
def test_syslog_has_options_but_not_the_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, module: ModuleType, options: dict[str, Any], journal: bool
) -> None:
    logged: list[Any] = []
    monkeypatch.setattr(basic, "has_journal", journal)
    monkeypatch.setattr(
        basic,
        "journal",
        SimpleNamespace(send=lambda *message, **fields: logged.append((message, fields))),
        raising=False,
    )
    monkeypatch.setattr(basic.syslog, "syslog", lambda *message: logged.append(message))
    served = serve(reply({"message": "no"}, 403))

    run_main(module, {"base_url": served.service.base_url, "api_key": SPECIAL_KEY, **options})

    assert served.requests[0].headers["Authorization"] == f"Bearer {SPECIAL_KEY}"
    assert "api_key=NOT_LOGGING_PARAMETER" in str(logged)
    assert_no_key(str(logged))
    assert_no_key(json.dumps(str(logged)))
