# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mock notices requests and responses that the document does not allow."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from mock_service import MockService

KEY = {"Authorization": "Bearer key"}
INVALID: dict[str, tuple[str, str, dict[str, Any]]] = {
    "unknown path": ("GET", "/project", {}),
    "empty segment": ("GET", "/projects//operations", {}),
    "outside of the base URL": ("GET", "/../../projects", {}),
    "method": ("PUT", "/api_keys", {}),
    "no key": ("GET", "/projects", {"headers": {}}),
    "key of another scheme": ("GET", "/projects", {"headers": {"Authorization": "Basic a2V5"}}),
    "path parameter's type": ("DELETE", "/api_keys/one", {}),
    "path parameter's format": ("GET", "/projects/p/operations/one", {}),
    "path parameter's pattern": ("GET", "/projects/p/branches/not%20an%20id", {}),
    "query parameter's range": ("GET", "/projects", {"params": {"limit": 401}}),
    "query parameter's type": ("GET", "/projects", {"params": {"limit": "ten"}}),
    "unknown query parameter": ("GET", "/projects", {"params": {"page_size": 10}}),
    "missing query parameter": ("GET", "/projects/p/connection_uri", {"params": {"role_name": "casey"}}),
    "missing body": ("POST", "/api_keys", {}),
    "unexpected body": ("GET", "/api_keys", {"json": {"key_name": "ci"}}),
    "body's content type": ("POST", "/api_keys", {"data": {"key_name": "ci"}}),
    "missing field": ("POST", "/api_keys", {"json": {}}),
    "unknown field": ("POST", "/api_keys", {"json": {"key_name": "ci", "name": "ci"}}),
    "unknown nested field": ("POST", "/projects/p/branches", {"json": {"branch": {"title": "ci"}}}),
    "field's type": ("POST", "/projects/p/branches", {"json": {"branch": {"name": 1}}}),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_request(service: MockService, case: str) -> None:
    method, path, options = INVALID[case]
    prepared = requests.Request(method, "http://mock", **{"headers": KEY, **options}).prepare()
    # As it is: requests would resolve the dots.
    prepared.url = service.base_url + path + prepared.path_url.removeprefix("/")
    response = requests.Session().send(prepared, timeout=60)
    assert response.status_code == 400, response.text
    assert service.sent == [] and service.violations
    service.violations.clear()


@pytest.mark.parametrize("body", [{}, {"projects": [{"id": "p"}]}, [], None])
def test_invalid_response(service: MockService, body: Any) -> None:
    service.reply("GET /projects", body)
    requests.get(f"{service.base_url}/projects", headers=KEY, timeout=60)
    assert service.violations
    service.violations.clear()
