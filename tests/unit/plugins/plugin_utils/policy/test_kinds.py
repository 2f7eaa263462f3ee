# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names, texts and severities of findings, by which other systems recognize them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._policy import kinds


@pytest.mark.parametrize(
    "kind, texts",
    [
        ("unknown", ("UnknownKey", "Every key has an allowed name", "The name of the key is not allowed.", "error")),
        ("expired", ("ExpiredKey", "No key is too old", "The key is older than max_age.", "warning")),
        ("idle", ("IdleKey", "No key is idle", "The key was not used for longer than max_idle.", "warning")),
        ("never_used", ("NeverUsedKey", "Every key was used", "The key was never used.", "warning")),
        ("duplicate", ("DuplicateKey", "No name is used twice", "Another key has the same name.", "warning")),
        ("over_limit", ("KeyOverLimit", "No limit is exceeded", "There are more keys than max_keys.", "warning")),
        ("missing", ("MissingKey", "Every declared key exists", "There is no key with a declared name.", "error")),
    ],
)
def test_texts_of_a_kind(kind: str, texts: tuple[str, ...]) -> None:
    assert kinds.KINDS[kind] == texts


def test_there_are_no_other_kinds() -> None:
    assert len(kinds.KINDS) == 7


@pytest.mark.parametrize("outcome, remains", [("reported", True), ("kept", True), ("revoked", False), ("gone", False)])
def test_findings_that_remain(outcome: str, remains: bool) -> None:
    assert bool(kinds.remaining([{"outcome": outcome}])) is remains


@pytest.mark.parametrize(
    "name, key_id, title",
    [("ci", 7, "ci (id 7)"), ("ci", None, "ci"), ("", 7, "without a name (id 7)"), ("a\x1bb", None, "a\\x1bb")],
)
def test_title_of_a_finding(name: Any, key_id: int | None, title: str) -> None:
    assert kinds.title_of({"name": name, "key_id": key_id}) == title
