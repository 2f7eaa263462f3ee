# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checked connection options: where and how requests are sent. Keeps P5 and P11."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from .._bare_key import stripped, why_no_key
from .._errors import InvalidOption
from .._options import MAX_SECONDS, integer

MAX_RETRIES = 100


def env_or_empty(variable: str) -> str:
    """The environment variable, or an empty value: connection_from() then says what to set, which Ansible's own message does not."""
    return os.environ.get(variable, "")


# The one place of types, defaults and environment variables; a part of each argument spec.
CONNECTION_OPTIONS: dict[str, dict[str, Any]] = {
    "base_url": {"type": "str", "fallback": (env_or_empty, ["CLOUDDB_BASE_URL"])},
    "api_key": {"type": "str", "no_log": True, "fallback": (env_or_empty, ["CLOUDDB_API_KEY"])},
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path"},
    "allow_http": {"type": "bool", "default": False},
    "api_timeout": {"type": "float", "default": 30},
    "api_retries": {"type": "int", "default": 5},
}


class Connection(NamedTuple):
    """Checked connection options: C(base_url) without a trailing slash, C(api_timeout) in seconds."""

    base_url: str
    api_key: str
    validate_certs: bool = CONNECTION_OPTIONS["validate_certs"]["default"]
    ca_path: str | None = None
    api_timeout: float = CONNECTION_OPTIONS["api_timeout"]["default"]
    api_retries: int = CONNECTION_OPTIONS["api_retries"]["default"]

    def __repr__(self) -> str:
        return f"Connection({self.base_url!r}, ...)"  # without the key


def connection_from(params: Mapping[str, Any]) -> Connection:
    """Check the connection options of a module or plugin.

    Raises InvalidOption, which names the option and never quotes the key.
    """
    _require_values(params)
    ca_path = params["ca_path"]
    if ca_path and not os.path.exists(ca_path):
        raise InvalidOption("ca_path", f"{ca_path} does not exist. Set the path of a CA bundle, or omit the option.")
    return Connection(
        base_url=_checked_base_url(params["base_url"], params["allow_http"]),
        # A module that only uses other keys than the account's has none.
        api_key="" if params["api_key"] is None else checked_key("api_key", params["api_key"]),
        validate_certs=params["validate_certs"],
        ca_path=ca_path,
        api_timeout=_checked_timeout(params["api_timeout"]),
        api_retries=integer(params, "api_retries", 0, MAX_RETRIES),
    )


def _require_values(params: Mapping[str, Any]) -> None:
    """Raise InvalidOption for options that are empty, both in the task and in the environment."""
    missing = {
        option: spec["fallback"][1][0]
        for option, spec in CONNECTION_OPTIONS.items()
        if "fallback" in spec and params[option] is not None and not stripped(params[option])
    }
    if missing:
        variables = f"environment variable{'s' if len(missing) > 1 else ''} {' and '.join(missing.values())}"
        raise InvalidOption(
            ", ".join(missing),
            f"no value is given. Set {' and '.join(missing)}, or the {variables} on the machine that sends the requests.",
        )


def _checked_base_url(base_url: str, allow_http: bool) -> str:
    wanted = "Set the service's https address with its version segment, for example https://control.example.com/api/v2."
    base_url = base_url.strip()
    try:
        url = urlsplit(base_url)
        host, _port = url.hostname, url.port
    except ValueError:
        raise InvalidOption("base_url", f"this is not an address. {wanted}") from None
    if not base_url.isprintable() or " " in base_url:
        raise InvalidOption("base_url", f"an address contains no white space. {wanted}")
    if "@" in url.netloc:
        raise InvalidOption("base_url", "must not contain a user or a password. Set the key in api_key.")
    if url.scheme not in ("http", "https"):
        raise InvalidOption("base_url", f"must begin with https:// (or with http:// for this machine). {wanted}")
    if not host or "\\" in url.netloc:
        raise InvalidOption("base_url", f"the address has no valid host. {wanted}")
    if url.query or url.fragment or "\\" in url.path or {".", ".."} & set(unquote(url.path).split("/")):
        raise InvalidOption("base_url", f"must not contain '?', '#', backslashes or dot segments. {wanted}")
    if url.scheme == "http" and not allow_http and not is_loopback(host):
        raise InvalidOption(
            "base_url",
            f"plain http would expose the key to every network on the way to {host}. Use https, or set allow_http: true.",
        )
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Whether this is the name or an address of this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _checked_timeout(seconds: float) -> float:
    if not 0 < seconds <= MAX_SECONDS:
        problem = f"must be a number of seconds greater than 0 and up to {MAX_SECONDS}, not {seconds}"
        raise InvalidOption("api_timeout", problem)
    return seconds


def checked_key(option: str, text: str) -> str:
    """The key in this text, without what stripped() drops. Raises InvalidOption, which does not quote it."""
    key = stripped(text)
    problem = why_no_key(key)
    if problem:
        raise InvalidOption(option, f"the value must be a key and nothing else, but {problem}. Set it to the bare key.")
    return key
