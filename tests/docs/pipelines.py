# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shell commands of the pipelines in the guide on continuous integration, as each CI system would run them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from blocks import blocks_of

GUIDE = "continuous_integration"
FILES = {block.caption: block.content for block in blocks_of(GUIDE) if block.caption}
GITHUB, GITLAB, JENKINS = ".github/workflows/preview.yml", ".gitlab-ci.yml", "Jenkinsfile"
NUMBER = 9


def commands(file: str, action: str) -> Iterator[str]:
    """The commands that a pipeline runs for an action on the pull request NUMBER, as GitHub names it: opened or closed."""
    if file == GITHUB:
        yield from _github(yaml.safe_load(FILES[file])["jobs"]["preview"]["steps"], action)
    elif file == GITLAB:
        jobs = yaml.safe_load(FILES[file])
        job = jobs["preview"] if action == "opened" else jobs[jobs["preview"]["environment"]["on_stop"]]
        for command in [*jobs["default"]["before_script"], *job["script"]]:
            yield f"CI_MERGE_REQUEST_IID={NUMBER}; {command}"
    elif action == "opened":  # Jenkins runs no build when a pull request is closed.
        for command in re.findall(r"sh '(.+)'", FILES[file].partition("post {")[0]):
            yield f"CHANGE_ID={NUMBER}; {command}"


def _github(steps: list[dict[str, Any]], action: str) -> Iterator[str]:
    def value_of(expression: str) -> Any:
        """The value of an expression; C(and) and C(or) of Python return the same operand."""
        python = expression.replace("github.event.action", repr(action)).replace("github.event.number", str(NUMBER))
        return eval(python.replace("&&", "and").replace("||", "or"))

    def text_of(template: str) -> str:
        return re.sub(r"\$\{\{(.+?)\}\}", lambda match: str(value_of(match[1].strip())), template)

    for step in steps:
        if "run" in step and value_of(step.get("if", "True")):
            variables = (f"{name}={text_of(value)}" for name, value in step.get("env", {}).items())
            yield "; ".join([*variables, text_of(step["run"])])
