# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The devcontainer's image, commands and programs fit the checkout. No package registry has its JSON schema."""

from __future__ import annotations

import json
import re
import subprocess

import yaml
from workspace import CHECKOUT

TEXT = (CHECKOUT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
DEVCONTAINER = json.loads(TEXT)


def test_image_has_the_python_of_the_tests() -> None:
    workflow = yaml.safe_load((CHECKOUT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    [setup] = [step for step in workflow["jobs"]["checks"]["steps"] if "setup-python" in step.get("uses", "")]
    major_of_image, python, _distribution = DEVCONTAINER["image"].partition(":")[2].split("-")
    assert major_of_image.isdigit()
    assert python == setup["with"]["python-version"]


def test_command_runs_a_target_of_make() -> None:
    [target] = re.findall(r"\bmake (\S+)", DEVCONTAINER["postCreateCommand"])
    done = subprocess.run(["make", "--dry-run", target], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    assert "--requirement tests/requirements.txt" in done.stdout


def test_programs_are_installed() -> None:
    requirements = (CHECKOUT / "tests" / "requirements.txt").read_text(encoding="utf-8")
    packages = set(re.findall(r"^[a-z][a-z-]*", requirements, re.MULTILINE))
    programs = set(re.findall(r"\.venv/bin/([\w-]+)", TEXT))
    assert {"python", "ansible-lint"} <= programs <= {"python", *packages}
