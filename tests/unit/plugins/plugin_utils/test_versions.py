# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place of names that ansible-core deprecates, and what it offers in each version."""

from __future__ import annotations

import re
from pathlib import Path

import ansible.errors

from ansible_collections.clouddb.control.plugins.plugin_utils import _versions

PLUGINS = Path(_versions.__file__).parents[1]
OLD_NAMES = re.compile(r"\b(unsafe_proxy|wrap_var|AnsibleFilterError|AnsibleLookupError)\b")
HAS_NEW_NAMES = hasattr(ansible.errors, "AnsibleTemplatePluginError")


def test_no_other_file_uses_the_old_names() -> None:
    users = [path.name for path in PLUGINS.rglob("*.py") if OLD_NAMES.search(path.read_text(encoding="utf-8"))]
    assert users == ["_versions.py"]


def test_values_are_marked_where_every_text_may_be_a_template() -> None:
    """From ansible-core 2.19 on, only what is marked as trusted is one."""
    [text] = _versions.inert({"a": ["{{ 1 }}"]})["a"]
    assert (text, getattr(text, "__UNSAFE__", False)) == ("{{ 1 }}", not HAS_NEW_NAMES)


def test_the_errors_are_those_that_ansible_shows_as_they_are() -> None:
    names = [error.__name__ for error in (_versions.FilterFailed, _versions.LookupFailed)]
    old = ["AnsibleFilterError", "AnsibleLookupError"]
    assert names == (["AnsibleTemplatePluginError"] * 2 if HAS_NEW_NAMES else old)
