# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine and the versions that the measurements ran on."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path


def describe() -> dict[str, str]:
    """Model and number of processors, and the versions of what is measured."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": platform.system(),
        "Python": platform.python_version(),
        **{package: version(package) for package in ("ansible-core", "requests", "urllib3")},
        "hetzner.hcloud": _collection_version("hetzner.hcloud"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _collection_version(name: str) -> str:
    manifest = files(f"ansible_collections.{name}") / "MANIFEST.json"
    return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
