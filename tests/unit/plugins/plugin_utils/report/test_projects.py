# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The complete facts of projects, and their order."""

from __future__ import annotations

from ansible_collections.clouddb.control.plugins.plugin_utils._report.projects import project_facts


def test_complete_facts() -> None:
    described = {
        **{"id": "p3", "name": "shop", "region_id": "eu", "platform_id": "aws", "pg_version": 17, "locked": True},
        **{"cpu_used_sec": 7, "branch_logical_size_limit": 100, "created_at": "2026-11-01T00:00:00Z"},
    }
    missing = dict.fromkeys(described)
    source = [
        {**described, "proxy_host": "eu.example"},
        {"id": "p2", "name": "Shop", "region_id": "{{ us }}", "platform_id": "", "pg_version": 16},
        {"id": "p1", "name": "Shop", "region_id": "eu", "pg_version": 16, "cpu_used_sec": 5},
        {"id": "p4", "name": "Blog"},
    ]
    facts = project_facts(source, ["p9", "p8"])
    assert {name: list(value.items()) for name, value in facts.items() if name.startswith("by_")} == {
        "by_region": [("eu", 2), ("unknown", 1), ("{ { us }}", 1)],
        "by_version": [("16", 2), ("17", 1), ("unknown", 1)],
        "by_platform": [("unknown", 3), ("aws", 1)],
    }
    assert {name: value for name, value in facts.items() if not name.startswith("by_")} == {
        "total": 4,
        "locked": 1,
        "cpu_used_sec": 12,
        "unavailable_ids": ["p8", "p9"],
        "list": [
            {**missing, "id": "p4", "name": "Blog"},
            {**missing, **source[2]},
            {**missing, **source[1]},
            described,
        ],
    }
