# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the files with findings have in common: the kinds, their texts, and which findings remain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...module_utils._untrusted import displayable

Finding = Mapping[str, Any]


class Kind(NamedTuple):
    """The texts about a kind of findings, and the severity (C(error) or C(warning))."""

    title: str
    none_found: str
    description: str
    level: str


KINDS = {
    "unknown": Kind("UnknownKey", "Every key has an allowed name", "The name of the key is not allowed.", "error"),
    "expired": Kind("ExpiredKey", "No key is too old", "The key is older than max_age.", "warning"),
    "idle": Kind("IdleKey", "No key is idle", "The key was not used for longer than max_idle.", "warning"),
    "never_used": Kind("NeverUsedKey", "Every key was used", "The key was never used.", "warning"),
    "duplicate": Kind("DuplicateKey", "No name is used twice", "Another key has the same name.", "warning"),
    "over_limit": Kind("KeyOverLimit", "No limit is exceeded", "There are more keys than max_keys.", "warning"),
    "missing": Kind("MissingKey", "Every declared key exists", "There is no key with a declared name.", "error"),
}


def remaining(findings: Iterable[Finding]) -> list[Finding]:
    """The findings on keys that were not revoked."""
    return [finding for finding in findings if finding["outcome"] not in ("revoked", "gone")]


def title_of(finding: Finding) -> str:
    """The name of the key, with its id if there is one."""
    name = displayable(finding["name"]) or "without a name"
    return name if finding["key_id"] is None else f"{name} (id {finding['key_id']})"
