# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request without a valid key gets 401, whatever its path, method and headers.

api.md: "A request with no Authorization header, an invalid key or a revoked key fails with HTTP 401 (Unauthorized)"; the contract's
test of the revocation has the revoked key.
"""

from __future__ import annotations

import http.client
import json
from itertools import product
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.tests.unit.support.sandbox import API_KEY

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]


def send(service, method, target, **headers):
    """Send a request without normalizing its target and headers."""
    connection = http.client.HTTPConnection(urlsplit(service.host_url).netloc, timeout=60)
    connection.request(method, target, body=b"{not json", headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_every_path_and_method_without_a_key_gets_401(service, step):
    """Each path with some methods, or with all."""
    before = service.keys()
    paths = [*service.ok("GET", "/openapi.json")["paths"], "/openapi.json", "/", "/nowhere", "/api/v2", "/_sandbox"]
    service.fault("status", status=500, times=None)
    for path, method in list(product(paths, METHODS))[::step]:
        answer = service.application.send(method, path, [], b"{not json")
        assert answer.status == 401, f"{method} {path}"
        assert (b"www-authenticate", b"Bearer") in answer.headers
        assert json.loads(answer.content)["code"] == ""
    service.ok("DELETE", "/_sandbox/faults")
    assert [key["id"] for key in service.keys()] == [key["id"] for key in before]


segments = st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: quote(text, safe=""))
segments |= st.sampled_from(["", ".", "..", "%2e%2e", "%00", "*"])
latin = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=80)
SIMILAR_TO_VALID = [
    API_KEY,
    f"Basic {API_KEY}",
    f"Bearer {API_KEY[1:]}",
    f"Bearer {API_KEY}{API_KEY}",
    f"Bearer {API_KEY.upper()}",
    f"Bearer: {API_KEY}",
    f"Bearer {API_KEY[:32]} {API_KEY[32:]}",
]


@given(
    st.sampled_from(METHODS),
    st.lists(segments, max_size=5),
    latin | latin.map(lambda text: f"Bearer {text}") | st.sampled_from(SIMILAR_TO_VALID),
    st.booleans(),
)
def test_any_path_with_an_invalid_key_gets_401(served, method, path, authorization, is_below_base):
    target = ("/api/v2/" if is_below_base else "/") + "/".join(path)
    assert send(served, method, target, Authorization=authorization.encode("latin-1")) == 401


def test_scheme_is_case_insensitive(served):
    assert send(served, "GET", "/api/v2/projects", Authorization=f"bEARER {API_KEY}") == 200
