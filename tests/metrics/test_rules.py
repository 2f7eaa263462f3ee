# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alert rules, in promtool."""

from __future__ import annotations

from typing import Any

import yaml
from conftest import ROOT, Promtool

RULES = ROOT / "extensions" / "prometheus" / "clouddb.rules.yml"
ALERTS = ROOT / "tests" / "metrics" / "alerts.yml"


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def test_rules_are_valid(promtool: Promtool) -> None:
    assert f"SUCCESS: {len(alerts())} rules found" in promtool("check", "rules", "--lint-fatal", str(RULES))


def test_alerts(promtool: Promtool) -> None:
    assert "SUCCESS" in promtool("test", "rules", str(ALERTS))
