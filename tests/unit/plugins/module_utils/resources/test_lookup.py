# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the resources in a list is the one that a task selects."""

from __future__ import annotations

from ansible_collections.clouddb.control.plugins.module_utils._lists import Listed
from ansible_collections.clouddb.control.plugins.module_utils._resources.goal import Find, deletion
from ansible_collections.clouddb.control.plugins.module_utils._resources.kinds import BRANCH
from ansible_collections.clouddb.control.plugins.module_utils._resources.lookup import select

GOAL = deletion(BRANCH, Find(("projects", "p", "branches"), "branches", {"name": "dev"}), {}, wait=True)


def test_one_that_is_being_deleted_counts_if_there_is_no_other() -> None:
    old, new = {"id": "br-1", "name": "dev", "current_state": "deleting"}, {"id": "br-2", "name": "dev"}
    for items, found in (([old, new], new), ([old], old)):
        assert select(Listed(items, [], [], {"dev"}), [{"name": "dev"}], GOAL) == (found, [])
