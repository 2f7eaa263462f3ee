# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of the connection options: each message names the option and the valid values, and none quotes the key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import (
    CONNECTION_OPTIONS,
    Connection,
    connection_from,
    encodings,
    is_sendable,
)

API_KEY = "s3cret"


def checked(**options: Any) -> Connection:
    defaults = {
        "base_url": "https://control.example.com/api/v2",
        "api_key": API_KEY,
        "validate_certs": True,
        "ca_path": None,
    }
    return connection_from({**defaults, "allow_http": False, "api_timeout": 30.0, "api_retries": 5, **options})


def refused(option: str, **options: Any) -> str:
    """The message of the error, which names this option."""
    with pytest.raises(InvalidOption) as error:
        checked(**options)
    assert error.value.details == {"option": option}
    assert str(error.value).startswith(f"{option}: ")
    assert API_KEY not in repr(error.value.as_result())
    return str(error.value)


def test_facts_of_the_options() -> None:
    facts = {"type", "default", "required", "no_log", "env"}
    assert all(set(option) <= facts for option in CONNECTION_OPTIONS.values())
    assert [name for name, option in CONNECTION_OPTIONS.items() if option.get("required")] == ["base_url", "api_key"]
    assert [name for name, option in CONNECTION_OPTIONS.items() if option.get("no_log")] == ["api_key"]
    assert {name: option["default"] for name, option in CONNECTION_OPTIONS.items() if "default" in option} == {
        "validate_certs": True,
        "allow_http": False,
        "api_timeout": 30,
        "api_retries": 5,
    }


def test_a_module_that_uses_other_keys_has_none() -> None:
    assert checked(api_key=None).api_key == ""


def test_options_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "0f1e2d3c.0").touch()
    connection = checked(validate_certs=False, ca_path=str(tmp_path), api_timeout=0.5, api_retries=0)
    assert connection == Connection("https://control.example.com/api/v2", API_KEY, False, str(tmp_path), 0.5, 0)


@pytest.mark.parametrize(
    "given, used",
    [
        ("https://control.example.com/api/v2/", "https://control.example.com/api/v2"),
        ("https://control.example.com/api/v2///", "https://control.example.com/api/v2"),
        (" https://control.example.com/api/v2\n", "https://control.example.com/api/v2"),
        ("HTTPS://control.example.com/api/v2", "https://control.example.com/api/v2"),
        ("https://control.example.com:8443/api/v2", "https://control.example.com:8443/api/v2"),
        ("https://control.example.com", "https://control.example.com"),
        ("https://control.example.com/a%20b/v2", "https://control.example.com/a%20b/v2"),
        ("https://[2001:db8::1]:8443/api/v2", "https://[2001:db8::1]:8443/api/v2"),
        ("https://192.0.2.1/api/v2", "https://192.0.2.1/api/v2"),
        ("https://control.example.com./api/v2", "https://control.example.com./api/v2"),
        ("https://control.example.com/X", "https://control.example.com/X"),
    ],
)
def test_https_base_url_is_accepted(given: str, used: str) -> None:
    assert checked(base_url=given).base_url == used


@pytest.mark.parametrize(
    "base_url, part",
    [
        ("control.example.com/api/v2", "the scheme must be https"),
        ("ftp://control.example.com/api/v2", "not 'ftp'"),
        ("file:///etc/passwd", "not 'file'"),
        ("//control.example.com/api/v2", "the scheme must be https"),
        ("https:///api/v2", "the address has no valid host"),
        ("https:control.example.com", "the address has no valid host"),
        ("https://:8443/api/v2", "the address has no valid host"),
        ("https://control example.com/api/v2", "contains no white space"),
        ("https://control.example.com\\.evil.example.com", "the address has no valid host"),
        ("https://control.example.com:0/api/v2", "the address has no valid host"),
        ("https://control.example.com:port/api/v2", "this is not an address"),
        ("https://control.example.com:65536/api/v2", "this is not an address"),
        ("https://[::1/api/v2", "this is not an address"),
        ("https://control.example.com/api v2", "contains no white space"),
        ("https://control.exam\nple.com/api/v2", "contains no white space"),
        ("https://*.example.com/api/v2", "the address has no valid host"),
        ("https://a..b/api/v2", "the address has no valid host"),
        ("https://.example.com/api/v2", "the address has no valid host"),
        (f"https://{'a' * 64}.example.com/api/v2", "the address has no valid host"),
        ("https://control.example.com/api/../v2", "must not contain '?', '#', backslashes or dot segments"),
        ("https://control.example.com/api/%2e%2E/v2", "must not contain '?', '#', backslashes or dot segments"),
        ("https://control.example.com/api/./v2", "must not contain '?', '#', backslashes or dot segments"),
        ("https://control.example.com/api\\v2", "must not contain '?', '#', backslashes or dot segments"),
        ("https://control.example.com/api/v2?org=1", "must not contain '?', '#', backslashes or dot segments"),
        ("https://control.example.com/api/v2#top", "must not contain '?', '#', backslashes or dot segments"),
    ],
)
def test_invalid_base_url_is_refused(base_url: str, part: str) -> None:
    message = refused("base_url", base_url=base_url)
    assert part in message
    assert message.endswith(
        ". Set the service's https address with its version segment, for example https://control.example.com/api/v2."
    )


@pytest.mark.parametrize(
    "credentials", [f"somebody:{API_KEY}", API_KEY, f":{API_KEY}", "somebody:", ":", "", "elsewhere.example.com\\"]
)
def test_credentials_in_base_url_are_refused_and_not_quoted(credentials: str) -> None:
    message = refused("base_url", base_url=f"https://{credentials}@control.example.com/api/v2")
    assert message == "base_url: must not contain a user or a password. Set the key in api_key."


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8080", "127.1.2.3", "[::1]", "[::1]:8080", "localhost", "localhost:8080", "LOCALHOST"],
)
def test_http_is_accepted_for_loopback_addresses(host: str) -> None:
    assert checked(base_url=f"http://{host}/api/v2").base_url == f"http://{host}/api/v2"


@pytest.mark.parametrize(
    "host",
    [
        "control.example.com",
        "192.0.2.1",
        "0.0.0.0",
        "10.0.0.1",
        "[2001:db8::1]",
        "[::]",
        "localhost.example.com",
        "evil.localhost",
        "127.0.0.1.example.com",
        "notlocalhost",
        "128.0.0.1",
    ],
)
def test_http_needs_allow_http_for_other_hosts(host: str) -> None:
    assert "Use https, or set allow_http: true." in refused("base_url", base_url=f"http://{host}/api/v2")
    assert checked(base_url=f"http://{host}/api/v2", allow_http=True).base_url == f"http://{host}/api/v2"


def test_allow_http_accepts_no_other_scheme() -> None:
    assert "the scheme must be https" in refused("base_url", base_url="ftp://127.0.0.1", allow_http=True)


@pytest.mark.parametrize("around", [f" {API_KEY}", f"{API_KEY}\n", f"\t{API_KEY}\r\n"])
def test_white_space_around_the_key_is_stripped(around: str) -> None:
    assert checked(api_key=around).api_key == API_KEY


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_empty_key_is_refused(empty: str) -> None:
    assert refused("api_key", api_key=empty) == (
        "api_key: no value is given. "
        "Set api_key, or the environment variable CLOUDDB_API_KEY on the machine that sends the requests."
    )


@pytest.mark.parametrize("empty", ["", " "])
def test_empty_options_are_named_together(empty: str) -> None:
    assert refused("base_url, api_key", base_url=empty, api_key=empty) == (
        "base_url, api_key: no value is given. Set base_url and api_key, or the environment variables CLOUDDB_BASE_URL "
        "and CLOUDDB_API_KEY on the machine that sends the requests."
    )


@pytest.mark.parametrize("inside", [" ", "\n", "\r\nX-Injected: 1", "\t", "\x00", "\x7f", "é", "\u2019", "\u2028"])
def test_key_with_invalid_header_characters_is_refused(inside: str) -> None:
    key = f"{API_KEY}{inside}{API_KEY}"
    message = refused("api_key", api_key=key)
    assert message == (
        "api_key: the value contains white space or characters other than visible ASCII. "
        "Check that it is a complete key, not encrypted and without quotes."
    )
    assert API_KEY not in message
    assert not is_sendable(key)


@pytest.mark.parametrize("key", ["a", "!~", "napi_0123-_=+/.", "x" * 4096])
def test_key_of_visible_ascii_is_accepted(key: str) -> None:
    assert is_sendable(key)
    assert checked(api_key=key).api_key == key


@pytest.mark.parametrize("api_timeout", [0.0, -1.0, float("nan"), float("inf"), float("-inf"), 31_536_001.0, 1e300])
def test_invalid_api_timeout_is_refused(api_timeout: float) -> None:
    message = refused("api_timeout", api_timeout=api_timeout)
    assert message == f"api_timeout: must be a number of seconds greater than 0 and up to 31536000, not {api_timeout}."


@pytest.mark.parametrize("api_timeout", [0.001, 30.0, 31_536_000.0])
def test_api_timeout_up_to_a_year_is_accepted(api_timeout: float) -> None:
    assert checked(api_timeout=api_timeout).api_timeout == api_timeout


@pytest.mark.parametrize("api_retries", [-1, -100, 101])
def test_api_retries_out_of_range_is_refused(api_retries: int) -> None:
    assert refused("api_retries", api_retries=api_retries).startswith("api_retries: must be ")


def test_missing_ca_path_is_refused(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    assert refused("ca_path", ca_path=missing) == (
        f"ca_path: {missing} does not exist. Set the path of a CA bundle, or omit the option."
    )


@pytest.mark.parametrize("content", [b"no certificate", b""], ids=["text", "empty"])
def test_ca_path_without_certificates_is_refused(tmp_path: Path, content: bytes) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(content)
    assert "contains no certificates in PEM format" in refused("ca_path", ca_path=str(bundle))


def test_ca_path_of_a_named_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refused("ca_path", ca_path=str(pipe)) == (
        f"ca_path: {pipe} is neither a file nor a directory. Set the path of a CA bundle."
    )


@pytest.mark.parametrize("name", [None, "ca.pem", "0f1e2d3c", "0f1e2d3c.pem", "x0f1e2d3c.0", "0f1e2d3c.0x"])
def test_directory_in_which_openssl_finds_no_certificate(tmp_path: Path, name: str | None) -> None:
    folder = tmp_path / str(name)
    folder.mkdir()
    if name:
        (folder / name).touch()
    assert refused("ca_path", ca_path=str(folder)) == (
        f"ca_path: {folder} has no certificates with the names that OpenSSL requires. "
        "Run openssl rehash, or set the path of a CA bundle."
    )


def test_directory_that_cannot_be_listed_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert checked(ca_path=str(tmp_path)).ca_path == str(tmp_path)


def test_keys_within_other_keys_are_redacted() -> None:
    """The longest first: the remainder of a longer one could be guessed."""
    connection = checked(api_key="b" * 12)
    for key in ("a" + "b" * 12, "c" + "b" * 12 + "c"):
        connection = connection.hiding(key)
    assert connection.redact(f"{'b' * 12} a{'b' * 12} c{'b' * 12}c") == "******** ******** ********"


def test_keys_so_short_that_text_may_contain_them_are_not_redacted() -> None:
    assert checked().hiding("a" * 5, "b" * 6).redact(f"{'a' * 5} {'b' * 6}") == f"{'a' * 5} ********"


def test_encodings_of_a_key() -> None:
    assert encodings("\"a/\\b'") == {"\"a/\\b'", "\\\"a/\\\\b'", "%22a/%5Cb%27", "%22a%2F%5Cb%27", "\"a/\\\\b\\'"}
    assert "\ud800" in encodings("\ud800")
