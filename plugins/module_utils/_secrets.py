# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is secret in data and texts of the service and of tasks, and the mask in its place. Keeps P5.

In data, the name of a field says that its value is secret. In any text, so do an address and an assignment. Only errors are
searched for secrets that are known from elsewhere: other data may have the same value as a password.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote, urlsplit

MASK = "********"
# Shorter texts also occur by chance.
MIN_LENGTH = 6
# Keys are longer. A shorter one may be the name of something.
MIN_KEY_LENGTH = 12
# JSON without any of these texts, in lower case, holds no secret. This takes a sixth of the time of a copy.
_HINTS = rb"pass|pwd|secret|token|key|sig|connection|://|:\/|invalid port|integer value|host name|\u".split(b"|")
# In a field with a secret name, properties such as an id are public. In a field that the task has named, nothing is.
PUBLIC, SECRET, ENTIRELY_SECRET = range(3)

# Patterns are compiled at their first use: most tasks have nothing to mask.
_SECRET_NAME = (
    r"key|connection_(?:uri|string)|(?:\w*_)?(?:pass|pwd)"
    r"|\w*(?:password|passwd|passphrase|secret|token|api_?key|private_?key)s?\d*(?:_(?!ids?_)\w*)?"
)
# The property of a secret, such as its id or the time of its last change, is not secret.
_PROPERTY_NAME = r"(?:\w*_)?(?:ids?|name|at|addr|set|count|used|type|length|limit|ttl|expiry|policy|version|status|encryption|fields)"
_SIGNATURE = r"(?:\w*_)?(?:sig|signature)"
# Fields whose texts quote others.
_ERROR_FIELDS = frozenset({"error", "errors", "message", "detail", "reason"})
# They are compared with what a task asks for, or sent back.
_VERBATIM_FIELDS = frozenset({"name", "cursor", "next"})

_PORT = r"\d{1,5}(?![^\s/,?#;:)\]>\"'.])"
_USER = r"[^\s:/?#\[\"'<>,]*:"
# The password in an address ends at the last @ before the query. In a web address, digits after the colon are a port, and
# the path may contain an @. If no @ follows, the text ends within the password, or the password contains spaces.
_USER_PART = (
    rf"(?i)(?P<begin>(?<=[a-z0-9])://(?:(?<!http://)(?<!https://){_USER}|{_USER}(?!{_PORT})))(?:(?!://|\?[\w.-]+=)\S)+(?=@)"
    rf"|(?P<cut>(?<=[a-z0-9])://{_USER}(?!{_PORT})(?=[^\s/]))(?:(?:(?!://)[^\n])+(?=@)|[^\s/?#\"']+)"
)
# Parsers quote the part of a password that they take for a port or a host.
_MISREAD_PASSWORD = (
    r"""((?:invalid port|integer value(?: as)?) (?P<quote>\\?["'])).*?(?=(?P=quote))|(host name \\?["'])[^"'\s]+(?=@)"""
)
_ASSIGNMENT = r"""(?<![\w.-])(?P<name>[A-Za-z][\w.-]*)(?:\s{0,3}=\s{0,3}|\\?["']\s{0,3}[:=]\s{0,3}(?=\\?["'])|(?P<sql>\s+)(?=['"]))"""
_QUOTED = r"""(?P<quote>\\?["'])(?:(?!(?P=quote))(?:\\.|[^\\]))+(?P=quote)"""
_VALUE, _VALUE_OF_URL, _VALUE_OF_LIST = (
    rf"(?s){_QUOTED}|[^\s{end}]*[^\s{end}\"',.:;)\]}}\\]" for end in ("", "&", ";")
)
# By the character before the name of the parameter.
_PARAMETER_VALUES = {"?": _VALUE_OF_URL, "&": _VALUE_OF_URL, ";": _VALUE_OF_LIST}


class Masker:
    """Masks the secrets that a task knows in what its clients return and raise.

    All copies of a client share it, even those with another key.
    """

    def __init__(self, key: str = ""):
        self.secrets = frozenset(encodings(key) if key else ())
        self._keys = self.secrets if len(key) >= MIN_KEY_LENGTH else frozenset()

    def hide(self, *secrets: str) -> None:
        """Mask these secrets in texts, and the passwords in those that are addresses.

        Those so short that ordinary text may contain them are not masked, nor is the mask itself, which looks like a banner.
        """
        hidden = [
            each for each in chain(secrets, *map(_passwords, secrets)) if len(each) >= MIN_LENGTH and each.strip("*")
        ]
        # No lock: only the thread of the task calls this. Not changed in place, because the others may be reading them.
        self.secrets = self.secrets.union(*map(encodings, hidden))

    def hide_key(self, key: str) -> None:
        """Mask another key, too, even in data."""
        self.hide(key)
        if len(key) >= MIN_KEY_LENGTH:
            self._keys = self._keys.union(encodings(key))

    def text(self, text: str) -> str:
        """The text of a message without the known secrets, and without secrets in addresses and assignments."""
        return masked_text(text, self.secrets)

    def data(self, value: Any, secret_fields: Collection[str] = (), content: bytes | None = None) -> Any:
        """Data of the service without secrets; C(content) is the JSON that was decoded."""
        if content is not None and not may_hold_secrets(content, self.secrets):
            return value
        return masked(value, secret_fields, self.secrets, self._keys)


def _passwords(secret: str) -> set[str]:
    """The password of an address, as it is and decoded."""
    try:
        password = urlsplit(secret).password or ""
    except ValueError:
        return set()
    return {password, unquote(password)}


def encodings(secret: str) -> set[str]:
    """The encodings in which a text may contain the secret: plain, JSON, percent-encoded, and Python's repr()."""
    quoted = {quote(secret, safe, errors="replace") for safe in ("/", "")}
    return {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], *quoted}


def may_hold_secrets(content: bytes, secrets: Collection[str]) -> bool:
    """Whether this JSON, not yet decoded, can hold one of C(secrets), or anything that masked() masks."""
    # Each project of the published API document says whether it stores passwords.
    lowered = content.lower().replace(b"store_passwords", b"")
    has_hint = any(hint in lowered for hint in _HINTS)
    return has_hint or any(secret.encode(errors="replace") in content for secret in secrets)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the value of a field or variable of this name is secret, such as C(password), C(dbPassword) and C(X-Auth-Token)."""
    words = _words(name)
    return re.fullmatch(_SECRET_NAME, words) is not None and re.fullmatch(_PROPERTY_NAME, words) is None


def _words(name: str) -> str:
    return re.sub(r"[.-]|(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def masked(
    value: Any, secret_fields: Collection[str] = (), secrets: Collection[str] = (), keys: Collection[str] = ()
) -> Any:
    """A copy in which the mask replaces the values of secret fields, at any depth, and what masked_text() masks.

    A field is secret if its name says so, or if C(secret_fields) has it. C(keys) are masked everywhere, even in the names of
    fields, C(secrets) only in the texts of errors.
    """
    keys, secrets = _longest_first(keys), _longest_first({*keys, *secrets})

    def copy(value: Any, name: str = "", secrecy: int = PUBLIC) -> Any:
        if isinstance(value, Mapping):
            return {
                _without(field, keys) if isinstance(field, str) else field: copy(
                    inner, str(field), _secrecy(str(field), secrecy, secret_fields)
                )
                for field, inner in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [copy(inner, name, secrecy) for inner in value]
        if secrecy and _is_set(value):
            return MASK
        if not isinstance(value, str):
            return value
        if name in _VERBATIM_FIELDS:
            return _without(value, keys)
        return _masked_text(value, secrets if name in _ERROR_FIELDS else keys)

    return copy(value)


def masked_text(text: str, secrets: Collection[str] = ()) -> str:
    """The text, with the mask in place of these secrets, and of the secrets in addresses, parameters and assignments."""
    return _masked_text(text, _longest_first(secrets))


def secret_texts(value: Any, secret_fields: Collection[str] = ()) -> set[str]:
    """The texts in secret fields that are long enough to be recognized elsewhere."""
    return {text for text in _texts(value, secret_fields) if len(text) >= MIN_LENGTH}


def _masked_text(text: str, secrets: Collection[str]) -> str:
    text = _without(text, secrets)
    if "://" in text:
        text = re.sub(_USER_PART, lambda found: f"{found['begin'] or found['cut']}{MASK}", text)
    if "=" in text or '"' in text or "'" in text:
        text = re.sub(_MISREAD_PASSWORD, lambda found: f"{found[1] or found[3]}{MASK}", text)
        text = "".join(_without_assigned(text))
    return text


def _longest_first(secrets: Collection[str]) -> list[str]:
    # Otherwise, the remainder of a longer one could be guessed.
    return sorted(secrets, key=len, reverse=True)


def _without(text: str, secrets: Collection[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _without_assigned(text: str) -> Iterator[str]:
    """The parts of the text, with the mask in place of what is assigned to secret names."""
    done = 0
    for found in re.finditer(_ASSIGNMENT, text):
        before = text[found.start() - 1 : found.start()]
        if found.start() < done or not _is_assigned_secret(found, is_parameter=before in _PARAMETER_VALUES):
            continue
        if value := re.compile(_PARAMETER_VALUES.get(before, _VALUE)).match(text, found.end()):
            quote = value["quote"] or ""
            yield f"{text[done : found.end()]}{quote}{MASK}{quote}"
            done = value.end()
    yield text[done:]


def _is_assigned_secret(found: re.Match[str], is_parameter: bool) -> bool:
    words = _words(found["name"])
    if found["sql"]:
        return words == "password"
    if words == "key" or re.fullmatch(_SIGNATURE, words):
        return is_parameter
    return is_secret_name(found["name"])


def _secrecy(name: str, around: int, secret_fields: Collection[str]) -> int:
    """How secret the field of this name is, in an object that is as secret as C(around)."""
    if around == ENTIRELY_SECRET or name in secret_fields:
        return ENTIRELY_SECRET
    is_secret = is_secret_name(name) or (around == SECRET and not re.fullmatch(_PROPERTY_NAME, _words(name)))
    return SECRET if is_secret else PUBLIC


def _is_set(value: Any) -> bool:
    # A boolean says that there is a secret, null and an empty text that there is none.
    return not isinstance(value, bool) and value not in (None, "")


def _texts(value: Any, secret_fields: Collection[str], secrecy: int = PUBLIC) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, secret_fields, _secrecy(str(name), secrecy, secret_fields))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner, secret_fields, secrecy)
    elif secrecy and _is_set(value):
        yield str(value)
