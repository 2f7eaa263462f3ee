# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Without a good key there is 401 and nothing else, whatever is asked for and however."""

from __future__ import annotations

import http.client
import json
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clouddb_sandbox import keys

API_KEY = "k" * 64
PROJECT = "wispy-lake-12345678"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]


def every_path(service):
    """Those of the OpenAPI document, with things that are there."""
    there = {"{project_id}": PROJECT, "{branch_id}": service.default_branch(), "{key_id}": "1", "{operation_id}": "x"}
    for path in [
        *service.ok("GET", "/openapi.json")["paths"],
        "/openapi.json",
        "/",
        "/nowhere",
        "/api/v2",
        "/_sandbox",
    ]:
        for name, value in there.items():
            path = path.replace(name, value)
        yield path


def send(service, method, target, **headers):
    """As it is: nothing is made of the target or of a header."""
    connection = http.client.HTTPConnection(urlsplit(service.host_url).netloc, timeout=10)
    connection.request(method, target, body=b"{not json", headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_every_path_and_every_method(service):
    before = service.keys()
    paths = list(every_path(service))
    service.fault("status", status=500, times=None)
    for path in paths:
        for method in METHODS:
            response, body = send(service, method, path)
            assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer"), f"{method} {path}"
            assert method == "HEAD" or json.loads(body)["code"] == "UNAUTHORIZED"
    service.ok("DELETE", "/_sandbox/faults")
    assert [key["id"] for key in service.keys()] == [key["id"] for key in before]
    assert [project["id"] for project in service.ok("GET", "projects")["projects"]] == [PROJECT]


segments = st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: quote(text, safe=""))
segments |= st.sampled_from(["", ".", "..", "%2e%2e", "%00", "*"])
latin = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=80)
NEAR = [
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
    latin | latin.map(lambda text: f"Bearer {text}") | st.sampled_from(NEAR),
    st.booleans(),
)
def test_any_path_with_any_key(service, method, path, authorization, is_below_base):
    target = ("/api/v2/" if is_below_base else "/") + "/".join(path)
    assert send(service, method, target, Authorization=authorization.encode("latin-1"))[0].status == 401


def test_a_key_is_admitted_by_a_comparison_that_takes_the_same_time_for_each(service, monkeypatch):
    """The hashes are compared, so that not even an index tells how much of a key is right."""
    compared = []
    monkeypatch.setattr(keys.hmac, "compare_digest", lambda stored, presented: compared.append((stored, presented)))
    assert service.get("projects").status_code == 401
    assert compared == [(keys.hash_secret(API_KEY), keys.hash_secret(API_KEY))]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_written_in_any_case(service, scheme):
    assert send(service, "GET", "/api/v2/projects", Authorization=f"{scheme} {API_KEY}")[0].status == 200
