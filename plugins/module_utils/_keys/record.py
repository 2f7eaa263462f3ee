# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a deployment: which key a consumer holds, how far its deployment got, and who else may hold a key.

It holds checksums of secrets, but no secret.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, NamedTuple

from .secret_file import SecretFile

# The key may not be everywhere on the consumer yet. It can be rolled back.
DEPLOYING = "deploying"
# The consumer has the key, and the service accepted it from there. It can be rolled back.
DEPLOYED = "deployed"
# Older keys may be revoked at any time, so the key is never rolled back.
COMMITTED = "committed"


class Previous(NamedTuple):
    """What a roll-back restores: the file with its owner and mode, and the deployment where it is known.

    C(sha256) is None if there was no file.
    """

    sha256: str | None
    uid: int | None
    gid: int | None
    mode: int | None
    key_id: int | None
    state: str | None
    deployed_at: str | None

    def set_attributes(self, path: str) -> bool:
        """Set owner, group and mode of the path. Raises OSError."""
        if self.uid is not None and self.gid is not None and self.mode is not None:
            os.chown(path, self.uid, self.gid)
            os.chmod(path, self.mode)
        return True


class Record(NamedTuple):
    """The latest deployment: key C(key_id) in a file with this C(sha256) (None: deployed by tasks only).

    C(consumers) are the names of the consumers that may hold a key, by key id. C(withdrawn) is the id of the key that was
    rolled back last, and must not be deployed any more.
    """

    key_id: int
    sha256: str | None
    state: str
    deployed_at: str | None
    previous: Previous | None
    consumers: dict[int, list[str]]
    withdrawn: int | None = None

    def as_text(self) -> str:
        previous = self.previous._asdict() if self.previous else None
        return json.dumps({**self._asdict(), "previous": previous}, indent=2) + "\n"


def read_record(file: SecretFile) -> Record | None:
    """The record in this file; None when there is none, or it is not one. Raises SecretFileError."""
    try:
        return _parse(json.loads(file.read() or "null"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def write_record(file: SecretFile, record: Record) -> None:
    """Replace the record in this file, readable by its owner only. Raises SecretFileError."""
    with file.replacement() as write:
        write(record.as_text())


def _parse(data: Any) -> Record | None:
    if data is None:
        return None
    record = Record(
        int(data["key_id"]),
        data["sha256"],
        str(data["state"]),
        data["deployed_at"],
        Previous(**data["previous"]) if data["previous"] else None,
        {int(key_id): [str(name) for name in names] for key_id, names in data["consumers"].items()},
        data["withdrawn"],
    )
    return record if record.state in (DEPLOYING, DEPLOYED, COMMITTED) else None


def checksum(secret: str | None) -> str | None:
    """The SHA-256 checksum of a secret, None for none."""
    return None if secret is None else hashlib.sha256(secret.encode()).hexdigest()
