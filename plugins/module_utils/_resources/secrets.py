# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the secrets of bodies and responses out of results. Keeps P5."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

MASK = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
SECRET_FIELDS = frozenset({"key", "connection_uri"})
# The id of a secret is not secret.
_SECRET_NAME = re.compile(r"(password|passwd|secret|token|private_key|api_key)(?!.*_ids?(_|\Z))", re.IGNORECASE)
# An address with a password, and one that is signed.
_SECRET_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://([^/@\s]*:[^/@\s]+@|[^\s]*[?&](x-amz-|x-goog-)?(signature|sig|token)=)", re.IGNORECASE
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]*")
# Shorter texts of responses also occur by chance. Those of a task are the user's own, and errors may quote them.
MIN_LENGTH_ELSEWHERE = 12
MIN_LENGTH_OF_TASK = 6


def masked(value: Any, secret_fields: Collection[str]) -> Any:
    """A copy without secrets: without the values of secret fields, wherever they occur, and without addresses that contain one.

    Secret are C(key), C(connection_uri), C(secret_fields), and fields whose names say so, such as C(password).
    """
    return _masked(value, secret_fields, secret_texts(value, secret_fields))


def secret_texts(value: Any, secret_fields: Collection[str], min_length: int = MIN_LENGTH_ELSEWHERE) -> set[str]:
    """The texts in secret fields that are long enough to be recognized elsewhere."""
    return {text for text in _texts(value, secret_fields) if len(text) >= min_length}


def masked_text(text: str, secrets: Collection[str]) -> str:
    """The text, with the mask in place of these secrets, and of each address that contains one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _ADDRESS.sub(lambda found: MASK if _SECRET_ADDRESS.search(found[0]) else found[0], text)


def _is_secret(name: str, secret_fields: Collection[str]) -> bool:
    return name in SECRET_FIELDS or name in secret_fields or _SECRET_NAME.search(name) is not None


def _is_scalar_secret(value: Any) -> bool:
    # A boolean says that there is a secret, null and an empty text that there is none.
    return not isinstance(value, bool) and value not in (None, "")


def _texts(value: Any, secret_fields: Collection[str], is_secret: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, secret_fields, is_secret or _is_secret(str(name), secret_fields))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner, secret_fields, is_secret)
    elif is_secret and _is_scalar_secret(value):
        yield str(value)


def _masked(value: Any, secret_fields: Collection[str], secrets: Collection[str], is_secret: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _masked(inner, secret_fields, secrets, is_secret or _is_secret(str(name), secret_fields))
            for name, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_masked(inner, secret_fields, secrets, is_secret) for inner in value]
    if is_secret:
        return MASK if _is_scalar_secret(value) else value
    if isinstance(value, str) and (_SECRET_ADDRESS.search(value) or any(text in value for text in secrets)):
        return MASK
    return value
