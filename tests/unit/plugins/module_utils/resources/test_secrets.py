# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets of bodies and responses: which are hidden, and what stays readable."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._resources.secrets import (
    MASK,
    masked,
    masked_text,
    secret_texts,
)
from ansible_collections.clouddb.control.tests.unit.support.in_one_test import in_one_test

SECRET = "hunter2-hunter2"


@in_one_test(
    "value",
    [
        {"key": SECRET},
        {"password": SECRET},
        {"role": {"name": "app", "password": SECRET}},
        {"connection_uri": f"postgresql://app:{SECRET}@host/db"},
        {"uri": f"postgresql://app:{SECRET}@host/db"},
        {"text": f"connect to postgres://app:{SECRET}@host now"},
        {"url": f"https://host/object?X-Amz-Date=1&X-Amz-Signature={SECRET}"},
        {"connection_uris": [{"connection_parameters": {"password": SECRET, "host": "h"}}]},
        {"passwords": [SECRET, {"a": SECRET}]},
        {"passwords": [123456789]},
        {"secret_server_key": SECRET},
        {"accessToken": SECRET},
        {"PASSWORD": SECRET},
        {"private_key_pem": SECRET},
        {"connection_uri": SECRET},
        {"passwd": SECRET},
        {"api_key": SECRET},
        {"secrets": [SECRET], "hint": f"it is {SECRET}"},
        {"custom": [SECRET]},
        {"password": SECRET, "hint": f"the password is {SECRET}"},
        {"custom": SECRET},
        {"custom": {"nested": [{"deep": SECRET}]}},
        [{"key": SECRET}],
        {"key": 123456789},
    ],
)
def test_every_secret_is_masked(value: Any) -> None:
    shown = json.dumps(masked(value, ["custom"]))
    assert SECRET not in shown
    assert "123456789" not in shown
    assert MASK in shown


@in_one_test(
    "value",
    [
        None,
        7,
        "text",
        {"passwordless_access": True, "password": None, "key": ""},
        {"name": "key", "keys": 3, "keyboard": "x", "uri": "https://host/path?x=1", "monkey": "y"},
        {"pagination": {"cursor": "2026-11-21T08:00:00Z"}},
        {"token_id": "tok-1", "secret_ids": ["a"], "token_id_short": "t"},
        {"time": "12:30@noon", "mail": "a@b.example.com"},
    ],
)
def test_the_rest_stays_as_it_is(value: Any) -> None:
    assert masked(value, []) == value


def test_addresses_with_secrets() -> None:
    shown = masked_text(f"POSTGRES://app:{SECRET}@host/db failed, see https://host/help", [])
    assert shown == f"{MASK} failed, see https://host/help"
    assert masked(f"HTTPS://host/object?SIG={SECRET}", []) == MASK


def test_secrets_within_each_other_are_masked_completely() -> None:
    for longer in (f"{SECRET}-2", f"a-{SECRET}"):
        assert masked_text(f"{longer} and {SECRET}", [SECRET, longer]) == f"{MASK} and {MASK}"


def test_secrets_of_at_least_twelve_characters_are_hidden_elsewhere() -> None:
    assert masked({"key": "x" * 12, "hint": "y" + "x" * 12}, []) == {"key": MASK, "hint": MASK}
    assert masked({"key": "x" * 11, "hint": "y" + "x" * 11}, []) == {"key": MASK, "hint": "y" + "x" * 11}


def test_short_secrets_are_hidden_in_their_fields_only() -> None:
    assert masked({"password": "a", "name": "banana"}, []) == {"password": MASK, "name": "banana"}


def test_the_secrets_of_a_body_are_known() -> None:
    assert secret_texts({"role": {"name": "app", "password": SECRET}, "pin": 1}, ["pin"]) == {SECRET}
    assert secret_texts(None, []) == set()
