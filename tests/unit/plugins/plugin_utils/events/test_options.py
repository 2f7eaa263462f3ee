# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the event source."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import InvalidOption
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import ARGUMENTS, source_options

CONNECTION = {"base_url": "https://control.example.com/api/v2/", "api_key": " some-key\n"}


OR_AGE = "or a duration such as 90s, 5m, 24h, 7d or 2w"


def test_defaults() -> None:
    options = source_options(CONNECTION, {})
    assert (options.connection.base_url, options.connection.api_key) == (
        "https://control.example.com/api/v2",
        "some-key",
    )
    assert (options.interval, options.max_interval, options.backfill, options.requests_per_minute) == (
        5,
        30,
        timedelta(0),
        600,
    )
    assert options.feedback is False
    assert options.wants_action("anything") and options.wants_status("anything")


def test_arguments_take_precedence_over_environment_variables() -> None:
    environment = {"CLOUDDB_BASE_URL": "https://env.example.com", "CLOUDDB_API_KEY": "env-key"}
    assert source_options({}, environment).connection.base_url == "https://env.example.com"
    assert source_options(CONNECTION, environment).connection.api_key == "some-key"


def test_strings_are_converted() -> None:
    strings = {
        "interval": "2.5",
        "max_interval": "60",
        "requests_per_minute": "30",
        "validate_certs": "no",
        "project_ids": "p",
        "backfill": "1h",
    }
    options = source_options({**CONNECTION, **strings}, {})
    assert (options.interval, options.max_interval, options.requests_per_minute) == (2.5, 60, 30)
    assert (options.connection.validate_certs, options.project_ids, options.backfill) == (
        False,
        ("p",),
        timedelta(hours=1),
    )


def test_times_are_seconds_or_ages() -> None:
    options = source_options({**CONNECTION, "interval": "10s", "max_interval": "2m", "backfill": 90}, {})
    assert (options.interval, options.max_interval, options.backfill) == (10, 120, timedelta(seconds=90))


def test_unknown_actions_and_statuses_cause_warnings() -> None:
    assert source_options({**CONNECTION, "actions": ["create_branch"], "statuses": "failed"}, {}).warnings() == []
    unknown = {"actions": ["create_branch", "create_brnach"], "statuses": "faild"}
    of_action, of_status = source_options({**CONNECTION, **unknown}, {}).warnings()
    assert of_action.startswith("actions: 'create_brnach' is unknown")
    assert of_status.startswith("statuses: 'faild' is unknown")


def test_paths_are_expanded_as_those_of_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "0f1e2d3c.0").touch()
    options = source_options({**CONNECTION, "ca_path": "~", "state_file": "$HOME/state.json"}, {})
    assert (options.connection.ca_path, options.state_file) == (str(tmp_path), f"{tmp_path}/state.json")


def test_null_is_the_default() -> None:
    assert source_options({**CONNECTION, **dict.fromkeys(set(ARGUMENTS) - set(CONNECTION))}, {}) == (
        source_options(CONNECTION, {})
    )


def test_api_timeout_and_certificate_check_default_to_those_of_the_modules() -> None:
    connection = source_options(CONNECTION, {}).connection
    assert connection == Connection(connection.base_url, connection.api_key, api_retries=0)


def test_max_interval_defaults_to_a_longer_interval() -> None:
    assert source_options({**CONNECTION, "interval": 300}, {}).max_interval == 300


@pytest.mark.parametrize(
    "name, value",
    [
        ("base_url", None),
        ("base_url", "ftp://example.com"),
        ("base_url", ["https://example.com"]),
        ("api_key", ""),
        ("api_key", 12345),
        ("validate_certs", "perhaps"),
        ("ca_path", "/no/such/file"),
        ("api_timeout", 0),
        ("api_timeout", "long"),
        ("api_retries", 3),
        ("project_ids", [1]),
        ("project_ids", [".."]),
        ("project_ids", {}),
        ("project_ids", []),
        ("query", "org_id=o"),
        ("query", {"limit": 5}),
        ("actions", []),
        ("actions", [" "]),
        ("statuses", 5),
        ("interval", 0),
        ("interval", "nan"),
        ("interval", True),
        ("interval", [5]),
        ("interval", 10**400),
        ("max_interval", 1),
        ("backfill", "yesterday"),
        ("backfill", "9999999999w"),
        ("backfill", "99999w"),
        ("state_file", " "),
        ("requests_per_minute", 0),
        ("requests_per_minute", 1.5),
        *(("requests_per_minute", value) for value in (True, "1.5")),
        *(("api_timeout", value) for value in (True, [5], 10**400)),
        ("backfill", True),
        ("page_size", 0),
        ("feedback", "maybe"),
        ("intervall", 5),
    ],
)
def test_error_names_the_argument(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=f"^{name}: "):
        source_options({**CONNECTION, name: value}, {})


@pytest.mark.parametrize(
    "name, value, problem",
    [
        ("validate_certs", "perhaps", "must be true or false"),
        ("api_timeout", "long", "must be a number, not 'long'"),
        ("page_size", 1.5, "must be an integer, not '1.5'"),
        ("requests_per_minute", True, "must be an integer, not 'True'"),
        ("project_ids", [1], "must be a list of strings"),
        ("query", [1], "must be a dictionary"),
        ("statuses", [], "is empty. Specify at least one value, or omit it to select all"),
        ("state_file", 5, "must be a string"),
        ("max_interval", 0, f"must be a number of seconds greater than 0 and up to 31536000, {OR_AGE}, not '0'"),
        ("backfill", "yesterday", f"must be a number of seconds from 0 to 3153600000, {OR_AGE}, not 'yesterday'"),
        ("backfill", "36501d", f"must be a number of seconds from 0 to 3153600000, {OR_AGE}, not '36501d'"),
    ],
)
def test_error_says_what_is_valid(name: str, value: Any, problem: str) -> None:
    with pytest.raises(InvalidOption) as error:
        source_options({**CONNECTION, name: value}, {})
    assert str(error.value) == f"{name}: {problem}."


def test_error_for_unknown_argument_lists_the_arguments() -> None:
    with pytest.raises(
        InvalidOption,
        match="^intervall: there is no such argument. The arguments are base_url, api_key, .*, interval, max_interval, ",
    ):
        source_options({**CONNECTION, "intervall": 5}, {})


@pytest.mark.parametrize(
    "value, truth",
    [
        *((value, True) for value in (True, "true", "True", "yes", "on", "1", 1)),
        *((value, False) for value in (False, "false", "no", "off", "0", 0)),
    ],
)
def test_boolean_values(value: Any, truth: bool) -> None:
    assert source_options({**CONNECTION, "validate_certs": value}, {}).connection.validate_certs is truth


def test_error_does_not_quote_the_key() -> None:
    with pytest.raises(InvalidOption) as raised:
        source_options({**CONNECTION, "api_key": "my secret"}, {})
    assert "secret" not in str(raised.value)
