# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of the connection options: each message names the option and the valid values, and none quotes the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection, connection_from

API_KEY = "s3cret"


def checked(**options: Any) -> Connection:
    defaults = {"base_url": "https://control.example.com/api/v2", "api_key": API_KEY, "validate_certs": True}
    limits = {"ca_path": None, "allow_http": False, "api_timeout": 30.0, "api_retries": 5}
    return connection_from({**defaults, **limits, **options})


def refused(option: str, **options: Any) -> str:
    """The message of the error, which names this option."""
    with pytest.raises(InvalidOption) as error:
        checked(**options)
    assert error.value.details == {"option": option}
    assert str(error.value).startswith(f"{option}: ")
    assert API_KEY not in repr(error.value.as_result())
    return str(error.value)


@pytest.mark.parametrize(
    "given, used",
    [
        (" HTTPS://control.example.com/api/v2///\n", "https://control.example.com/api/v2"),
        ("https://control.example.com:8443", "https://control.example.com:8443"),
        ("https://[2001:db8::1]/a%20b/V2", "https://[2001:db8::1]/a%20b/V2"),
        *((f"http://{host}/v2", f"http://{host}/v2") for host in ("127.0.0.1:8080", "127.1.2.3", "[::1]", "LOCALHOST")),
    ],
)
def test_https_and_loopback_addresses_are_accepted(given: str, used: str) -> None:
    assert checked(base_url=given).base_url == used


@pytest.mark.parametrize(
    "base_url, part",
    [
        *((url, "must begin with https://") for url in ("control.example.com/api/v2", "file:///etc/passwd")),
        *((f"https://{rest}", "the address has no valid host") for rest in ("/api/v2", "x.example.com\\.example.com")),
        *((f"https://{rest}", "this is not an address") for rest in ("x.example.com:port/api/v2", "[::1/api/v2")),
        ("https://control.exam\nple.com/api/v2", "contains no white space"),
        *(
            (f"https://x.example.com/api{rest}", "must not contain '?', '#', backslashes or dot segments")
            for rest in ("/%2e%2E/v2", "\\v2", "/v2?org=1")
        ),
    ],
)
def test_invalid_base_url_is_refused(base_url: str, part: str) -> None:
    assert part in refused("base_url", base_url=base_url)


@pytest.mark.parametrize("credentials", [f"somebody:{API_KEY}", API_KEY, "", "elsewhere.example.com\\"])
def test_credentials_in_base_url_are_refused_and_not_quoted(credentials: str) -> None:
    refused("base_url", base_url=f"https://{credentials}@control.example.com/api/v2")


@pytest.mark.parametrize("host", ["control.example.com", "0.0.0.0", "[::]", "evil.localhost", "127.0.0.1.example.com"])
def test_http_needs_allow_http_unless_the_address_is_a_loopback_address(host: str) -> None:
    assert "allow_http: true" in refused("base_url", base_url=f"http://{host}/api/v2")
    assert checked(base_url=f"http://{host}/api/v2", allow_http=True).base_url == f"http://{host}/api/v2"


@pytest.mark.parametrize("inside", [" ", "\r\nX-Injected: 1", "\x00", "é", "\u2028"])
def test_key_with_invalid_header_characters_is_refused(inside: str) -> None:
    key = f"{API_KEY}{inside}{API_KEY}"
    refused("api_key", api_key=key)
    assert "it begins with 'Bearer '" in refused("api_key", api_key=f"Bearer {key}")


def test_invisible_characters_around_a_key_are_dropped() -> None:
    """As a key that was copied from a web page, or saved by an editor of Windows, has them."""
    around = "\ufeff\u200b \u2060\n\u200d\u200c\xa0\r"
    assert checked(api_key=f"{around}{API_KEY}{around}").api_key == API_KEY
    refused("api_key", api_key="\ufeff\u200b")
    assert "it has the character U+200B at position 3." in refused("api_key", api_key=f"ab\u200b{API_KEY}")


@pytest.mark.parametrize("empty", [{"api_key": " "}, {"base_url": "", "api_key": "\n"}])
def test_empty_options_are_named_together(empty: dict[str, str]) -> None:
    refused(", ".join(empty), **empty)


@pytest.mark.parametrize(
    "option, value",
    [
        *(("api_timeout", seconds) for seconds in (0.0, -1.0, float("nan"), float("inf"), 31_536_001.0)),
        *(("api_retries", retries) for retries in (-1, 101)),
        ("ca_path", "/nowhere/missing.pem"),
    ],
)
def test_other_invalid_values_are_refused(option: str, value: Any) -> None:
    refused(option, **{option: value})


def test_options_are_passed_on(tmp_path: Path) -> None:
    connection = checked(validate_certs=False, ca_path=str(tmp_path), api_timeout=0.5, api_retries=0)
    assert checked(api_key=None).api_key == "", "a module that uses other keys"
    assert connection == Connection("https://control.example.com/api/v2", API_KEY, False, str(tmp_path), 0.5, 0)
