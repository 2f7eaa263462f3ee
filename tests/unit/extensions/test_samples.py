# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sample rulebook, its playbook, and the labels of loops, for any response of the service."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from jinja2 import Environment, StrictUndefined

ROOT = Path(__file__).parents[3]
SHOWN = ("playbooks", "examples", "docs", "roles", "plugins")


def test_rulebook_uses_only_fields_that_every_event_has() -> None:
    rulebook = (ROOT / "extensions" / "eda" / "rulebooks" / "operations.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"event\.clouddb\.([\w.]+)", rulebook))
    assert used == {"operation.id", "operation.status", "project.id", "seconds"}


def test_report_needs_only_the_fields_that_every_operation_has() -> None:
    (play,) = yaml.safe_load((ROOT / "playbooks" / "operation_report.yml").read_text(encoding="utf-8"))
    (content,) = [task["ansible.builtin.copy"]["content"] for task in play["tasks"] if "ansible.builtin.copy" in task]
    report = Environment(undefined=StrictUndefined, autoescape=False).from_string(content)
    text = report.render(
        project_id="p",
        operation_id="o",
        found={"operations": [{"id": "o", "status": "failed"}]},
        failures={"summary": {"total": 0, "by_action": {}}},
    )
    assert "unknown is failed" in text
    assert "branch none, compute none" in text


def test_labels_of_loops_hold_no_text_of_others() -> None:
    """Ansible prints labels as they are, with the escape sequences of a name."""
    files = [
        path for folder in SHOWN for path in (ROOT / folder).rglob("*") if path.suffix in (".yml", ".rst", ".md", ".py")
    ]
    labels = [
        (path.name, label)
        for path in files
        for label in re.findall(r"\blabel: (.*\{\{.*)", path.read_text(encoding="utf-8"))
    ]
    assert len(labels) > 5
    allowed = r"item\.(item\.)?(id|total|secret_name)"
    assert [entry for entry in labels if not re.fullmatch(rf'"\{{\{{ (?:{allowed}) \}}\}}[ a-z]*"', entry[1])] == []
