# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of the event source."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils.change_options import change_options
from ansible_collections.clouddb.control.plugins.module_utils.errors import InvalidOption

CONNECTION = {"base_url": "https://control.example.com/api/v2/", "api_key": " some-key\n"}


def test_the_defaults() -> None:
    options = change_options(CONNECTION, {})
    assert (options.connection.base_url, options.connection.api_key) == ("https://control.example.com/api/v2", "some-key")
    assert (options.interval, options.max_interval, options.backfill, options.requests_per_minute) == (5, 30, timedelta(0), 600)
    assert options.wants_action("anything") and options.wants_status("anything")


def test_the_connection_comes_from_the_environment_unless_it_is_given() -> None:
    environment = {"CLOUDDB_BASE_URL": "https://env.example.com", "CLOUDDB_API_KEY": "env-key"}
    assert change_options({}, environment).connection.base_url == "https://env.example.com"
    assert change_options(CONNECTION, environment).connection.api_key == "some-key"


def test_strings_that_variables_have_become_are_understood() -> None:
    strings = {"interval": "2.5", "max_interval": "60", "requests_per_minute": "30", "validate_certs": "no", "project_ids": "p", "backfill": "1h"}
    options = change_options({**CONNECTION, **strings}, {})
    assert (options.interval, options.max_interval, options.requests_per_minute) == (2.5, 60, 30)
    assert (options.connection.validate_certs, options.project_ids, options.backfill) == (False, ("p",), timedelta(hours=1))


def test_a_long_interval_is_the_longest_too() -> None:
    assert change_options({**CONNECTION, "interval": 300}, {}).max_interval == 300


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
        ("actions", [" "]),
        ("statuses", 5),
        ("interval", 0),
        ("interval", "nan"),
        ("interval", True),
        ("interval", [5]),
        ("max_interval", 1),
        ("backfill", "yesterday"),
        ("backfill", "9999999999w"),
        ("backfill", "99999w"),
        ("state_file", " "),
        ("requests_per_minute", 0),
        ("requests_per_minute", 1.5),
        ("page_size", 0),
        ("feedback", "maybe"),
        ("intervall", 5),
    ],
)
def test_what_is_wrong_is_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=f"^{name}: "):
        change_options({**CONNECTION, name: value}, {})


def test_a_wrong_key_is_not_quoted() -> None:
    with pytest.raises(InvalidOption) as raised:
        change_options({**CONNECTION, "api_key": "my secret"}, {})
    assert "secret" not in str(raised.value)
