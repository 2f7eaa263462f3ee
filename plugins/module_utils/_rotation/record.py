# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a deployment: which key a host holds, how far its deployment got, and which hosts use the keys.

It holds checksums of secrets, but no secret. Keeps P5 and P6.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from .._errors import SecretFileError
from .._files.atomic_file import resolve_directory
from .._files.secret_file import SecretFile

# In bytes. A record has the names of all hosts.
MAX_SIZE = 16 * 2**20
# The key may not be everywhere on the host yet. It can be rolled back.
DEPLOYING = "deploying"
# The host has the key, and the service accepted it from there. It can be rolled back.
DEPLOYED = "deployed"
# Older keys may be revoked at any time, so the key is never rolled back.
COMMITTED = "committed"


class Previous(NamedTuple):
    """What a rollback restores: the file with its FileAttributes, and the deployment where it is known.

    C(sha256) is None if there was no file.
    """

    sha256: str | None
    attributes: dict[str, int] | None
    key_id: int | None
    state: str | None
    deployed_at: str | None


class KnownKey(NamedTuple):
    """The names of the hosts that may use a key, the checksum of its secret, and whether the record's host has confirmed it."""

    hosts: list[str]
    sha256: str
    confirmed: bool = False


class Record(NamedTuple):
    """The latest deployment: key C(key_id) in a file with this C(sha256) (None: deployed by tasks only).

    C(keys) are the keys that were not revoked, by id. C(rolled_back) is the id of the key that was rolled back last, and
    must not be deployed again. C(host) is the name of the host that the key was deployed to last, and C(path) that of the
    file, if any.
    """

    key_id: int | None
    sha256: str | None
    state: str | None
    deployed_at: str | None
    previous: Previous | None
    keys: dict[int, KnownKey]
    rolled_back: int | None = None
    host: str | None = None
    path: str | None = None

    def is_about(self, path: str | None) -> bool:
        """Whether the record is about the file with this path, None if there is none. One of version 1.1.0 does not say."""
        return self.path in (None, path)

    def with_confirmed(self, key_id: int, confirmed: bool) -> Record:
        """The record, in which the deployment of this key was completed or not, if the record has the key."""
        known = {other: key._replace(confirmed=confirmed) for other, key in self.keys.items() if other == key_id}
        return self._replace(keys={**self.keys, **known})

    def as_text(self) -> str:
        """The record as the JSON that its file has."""
        previous = self.previous._asdict() if self.previous else None
        keys = {
            str(key_id): {"hosts": key.hosts, "sha256": key.sha256, "confirmed": key.confirmed}
            for key_id, key in sorted(self.keys.items())
        }
        return json.dumps({**self._asdict(), "previous": previous, "keys": keys}, indent=2) + "\n"


# Of a host that has none.
NO_RECORD = Record(None, None, None, None, None, {})


def record_file(path: str, check_mode: bool) -> SecretFile:
    """The file of a record."""
    path = resolve_directory(path)
    return SecretFile(path, lambda path: False, option="record", max_size=MAX_SIZE, check_mode=check_mode)


def read_record(file: SecretFile) -> Record | None:
    """The record in this file; None when there is none. Raises SecretFileError, even for a file that is no record."""
    text = file.read(private=True)
    if not text:
        return None
    try:
        return _parse(json.loads(text))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        # It may be a file with a secret.
        raise SecretFileError(
            f"record: {file.path} is not the record of a deployment. Set record to another path, or remove the file."
        ) from None


def _parse(data: Any) -> Record:
    """The record. One of version 1.1.0 has other names, and neither the host, the path nor whether a key is confirmed."""
    record = Record(
        int(data["key_id"]),
        data["sha256"],
        str(data["state"]),
        data["deployed_at"],
        Previous(**data["previous"]) if data["previous"] else None,
        {int(key_id): _parse_key(key) for key_id, key in data["keys"].items()},
        data["rolled_back"] if "rolled_back" in data else data["withdrawn"],
        data.get("host"),
        data.get("path"),
    )
    if record.state not in (DEPLOYING, DEPLOYED, COMMITTED):
        raise ValueError
    if record.state != DEPLOYING and "confirmed" not in data["keys"].get(str(data["key_id"]), {}):
        # Version 1.1.0 records it for the latest key only.
        return record.with_confirmed(int(data["key_id"]), True)
    return record


def _parse_key(data: Any) -> KnownKey:
    hosts = data["hosts"] if "hosts" in data else data["consumers"]
    return KnownKey([str(name) for name in hosts], str(data["sha256"]), bool(data.get("confirmed")))


def checksum(secret: str) -> str:
    """The SHA-256 checksum of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def checksum_of(secret: str | None) -> str | None:
    """The SHA-256 checksum of a file's secret; None if there is no file."""
    return None if secret is None else checksum(secret)
