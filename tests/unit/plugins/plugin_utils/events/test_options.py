# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the event source."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import ARGUMENTS, source_options

CONNECTION = {"base_url": "https://control.example.com/api/v2/", "api_key": " some-key\n"}


def test_defaults() -> None:
    options = source_options(CONNECTION)
    assert options.connection.base_url == "https://control.example.com/api/v2"
    assert options.connection.api_key == "some-key"
    assert (options.interval, options.max_interval, options.backfill) == (5, 30, timedelta(0))
    assert options.requests_per_minute == 600


def test_arguments_take_precedence_over_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDDB_BASE_URL", "https://env.example.com")
    monkeypatch.setenv("CLOUDDB_API_KEY", "env-key")
    assert source_options({}).connection.base_url == "https://env.example.com"
    assert source_options(CONNECTION).connection.api_key == "some-key"
    monkeypatch.setenv("CLOUDDB_ORG_ID", "org-1")
    assert source_options(CONNECTION).query == {"org_id": ["org-1"]}
    assert source_options({**CONNECTION, "org_id": "org-2"}).query == {"org_id": ["org-2"]}


def test_strings_are_converted() -> None:
    strings = {"interval": "2.5", "requests_per_minute": "30", "project_ids": "p", "backfill": "1h"}
    options = source_options({**CONNECTION, **strings})
    assert (options.interval, options.requests_per_minute) == (2.5, 30)
    assert (options.project_ids, options.backfill) == (("p",), timedelta(hours=1))


def test_paths_are_expanded_as_those_of_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "0f1e2d3c.0").touch()
    options = source_options({**CONNECTION, "ca_path": "~", "state_file": "$HOME/state.json"})
    assert (options.connection.ca_path, options.state_file) == (str(tmp_path), f"{tmp_path}/state.json")


def test_null_is_the_default() -> None:
    assert source_options({**CONNECTION, **dict.fromkeys(set(ARGUMENTS) - set(CONNECTION))}) == (
        source_options(CONNECTION)
    )


def test_max_interval_is_not_shorter_than_interval() -> None:
    assert source_options({**CONNECTION, "interval": 300}).max_interval == 300


@pytest.mark.parametrize(
    "name, value",
    [
        ("base_url", None),
        ("base_url", "ftp://example.com"),
        ("api_key", ""),
        ("api_key", 12345),
        ("validate_certs", "perhaps"),
        ("ca_path", "/no/such/file"),
        ("api_timeout", 0),
        ("api_retries", 3),
        ("project_ids", [1]),
        ("project_ids", [".."]),
        ("project_ids", []),
        ("query", "org_id=o"),
        ("query", {"limit": 5}),
        ("statuses", 5),
        ("interval", 0),
        ("max_interval", 0),
        ("backfill", "yesterday"),
        ("backfill", "99999w"),
        ("state_file", " "),
        ("requests_per_minute", 0),
        *(("api_timeout", value) for value in ("long", 10**400)),
        ("intervall", 5),
    ],
)
def test_error_names_the_argument(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=f"^{name}: "):
        source_options({**CONNECTION, name: value})


@pytest.mark.parametrize(
    "value, truth", [(True, True), ("True", True), ("yes", True), (1, True), (False, False), ("off", False), (0, False)]
)
def test_boolean_values(value: Any, truth: bool) -> None:
    assert source_options({**CONNECTION, "validate_certs": value}).connection.validate_certs is truth


def test_error_does_not_quote_the_key() -> None:
    with pytest.raises(InvalidOption) as raised:
        source_options({**CONNECTION, "api_key": "my secret"})
    assert "secret" not in str(raised.value)
