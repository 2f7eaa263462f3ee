# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Key names of any characters: main() of the modules creates, finds and revokes keys of exactly these names on the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.client import Client
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import Connection
from ansible_collections.clouddb.control.plugins.modules import api_key, api_key_info
from ansible_collections.clouddb.control.tests.unit.support import api_key_task
from ansible_collections.clouddb.control.tests.unit.support.module_main import Outcome, run_main
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox, running_sandbox

HOSTILE = [
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{{ lookup('pipe', 'id') }}",
    "'; DROP TABLE api_keys; --",
    '"quoted" and \\escaped\\',
    "two\r\nlines\n",
    "\x01\x7f",
    " around ",
    "true",
    "1e3",
    "null",
    "{a: [1]}",
    "!unsafe x",
    "%2e%2e%2f",
    "$(id)",
    "e\u0301",
    "\u202eright to left",
    "\ufeffmark",
    "x" * 300,
]
# NUL is excluded: from Python 3.12 on, Ansible fails to log the arguments of a module that have one.
names = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=300)
    | st.sampled_from(HOSTILE)
).filter(str.strip)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as running:
        yield running


def task(sandbox: Sandbox, module: ModuleType, **options: Any) -> Outcome:
    return run_main(module, {"base_url": sandbox.base_url, "api_key": sandbox.api_key, **options})


@given(names)
def test_any_name_can_be_created_and_revoked(sandbox: Sandbox, name: str) -> None:
    assume(not sandbox.keys(name))
    others = sandbox.api("GET", "/api_keys")
    created = task(sandbox, api_key, name=name).success
    assert created["changed"] is True
    assert created["api_key"]["name"] == name
    (existing,) = sandbox.keys(name)
    assert existing["id"] == created["api_key"]["id"]
    assert sandbox.accepts(created["key"])

    assert task(sandbox, api_key, name=name).success["changed"] is False
    (found,) = task(sandbox, api_key_info, name=name).success["api_keys"]
    assert (found["id"], found["name"]) == (existing["id"], name)
    # Names that differ in case, white space or Unicode normalization are other names.
    similar = {name.swapcase(), name.strip(), name + " ", normalize("NFC", name), normalize("NFD", name)} - {
        key["name"] for key in [*others, existing]
    }
    assert [task(sandbox, api_key_info, name=other).success["api_keys"] for other in similar] == [[]] * len(similar)

    revoked = task(sandbox, api_key, state="absent", name=name).success
    assert [key["id"] for key in revoked["revoked"]] == [existing["id"]]
    assert not sandbox.accepts(created["key"])
    assert ids(sandbox.api("GET", "/api_keys")) == ids(others)


@given(st.text(" \t\r\n\u00a0\u2003", max_size=5))
def test_blank_names_are_refused(sandbox: Sandbox, name: str) -> None:
    outcome = task(sandbox, api_key, name=name)
    assert outcome.failure == {"kind": "invalid_option", "option": "name"}


@given(st.text(), st.sampled_from(["\ud800", "\udfff"]))
def test_names_with_lone_surrogates_are_refused(sandbox: Sandbox, text: str, surrogate: str) -> None:
    before = ids(sandbox.api("GET", "/api_keys"))
    with pytest.raises(ClouddbError):
        api_key_task.task(Client(Connection(sandbox.base_url, sandbox.api_key)), name=text + surrogate)
    assert ids(sandbox.api("GET", "/api_keys")) == before


def ids(keys: list[dict[str, Any]]) -> list[int]:
    return [key["id"] for key in keys]
