# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of the API of GitHub, with the Actions secrets of one repository."""

from __future__ import annotations

import base64
from typing import Any

from fake_service import FakeService
from nacl.public import PrivateKey, SealedBox
from scripted_service import Request

REPOSITORY = "example/shop"
SECRETS = f"/repos/{REPOSITORY}/actions/secrets"
KEY_ID = "012345678912345678"


class GithubApi(FakeService):
    """The values of the secrets. No request returns them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.secrets: dict[str, str] = {}
        self._private_key = PrivateKey.generate()

    def result(self, request: Request) -> tuple[int, Any]:
        folder, _slash, name = request.path.rpartition("/")
        if folder != SECRETS:
            raise KeyError(request.path)
        if request.method == "GET" and name == "public-key":
            return 200, {"key_id": KEY_ID, "key": base64.b64encode(bytes(self._private_key.public_key)).decode()}
        if request.method == "GET":
            return (200, {"name": name}) if name in self.secrets else (404, {"message": "Not Found"})
        if request.method == "PUT" and request.json["key_id"] == KEY_ID:
            status = 204 if name in self.secrets else 201
            encrypted = base64.b64decode(request.json["encrypted_value"], validate=True)
            self.secrets[name] = SealedBox(self._private_key).decrypt(encrypted).decode()
            return status, None if status == 204 else {}
        if request.method == "DELETE":
            del self.secrets[name]
            return 204, None
        return 422, {"message": "Bad request"}
