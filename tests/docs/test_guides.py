# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guides work in the order of the menu: one reader follows them in one directory, with nothing prepared.

A selected guide is preceded by those before it. The tests share the reader, so pytest-xdist must run this file in one process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pipelines
import pytest
import requests
from blocks import DOCS, GUIDES, blocks_of, guides
from reader import Reader
from replacements import NOT_CHECKED, NOT_RUN, REPLACED_COMMANDS, is_run
from transcript import commands_of

FOLLOWED = [guide for guide in guides() if any(map(is_run, blocks_of(guide)))]
# These continue one another. The first one starts the sandbox, and names the command that removes it.
ON_THE_SANDBOX = FOLLOWED[FOLLOWED.index("getting_started") :]
REMOVE_SANDBOX = "ansible-playbook clouddb.control.sandbox -e sandbox_state=absent"
SMOKE = {"getting_started", "resources"}
WITHOUT_THE_SANDBOX = {"getting_started", "testing_playbooks", "real_account"}
NEEDS = "You need the sandbox of :ref:`Getting started <ansible_collections.clouddb.control.docsite.getting_started>`."
README = DOCS.parent / "README.md"


def follow_until(guide: str, reader: Reader) -> None:
    last = ON_THE_SANDBOX.index(guide) if guide in ON_THE_SANDBOX else 0
    for each in [*ON_THE_SANDBOX[:last], guide]:
        if each not in reader.followed:
            reader.follow(each)


@pytest.mark.parametrize(
    "guide", [pytest.param(guide, marks=pytest.mark.smoke if guide in SMOKE else []) for guide in FOLLOWED]
)
def test_guide(guide: str, reader: Reader) -> None:
    follow_until(guide, reader)


@pytest.mark.parametrize("file", [pipelines.GITHUB, pipelines.GITLAB, pipelines.JENKINS])
def test_pipeline_creates_a_preview_and_removes_it(file: str, reader: Reader) -> None:
    follow_until(pipelines.GUIDE, reader)
    run_pipeline(file, "opened", reader)
    assert f"pr-{pipelines.NUMBER}" in branches(reader)
    run_pipeline(file, "closed", reader)
    if file == pipelines.JENKINS:
        reader.shell.run(f"ansible-playbook remove_preview.yml -e pull_request={pipelines.NUMBER}")
    assert f"pr-{pipelines.NUMBER}" not in branches(reader)


def run_pipeline(file: str, action: str, reader: Reader) -> None:
    """Run the commands of a pipeline, with the tarball in place of Galaxy, and a server in place of the compute."""
    for command in pipelines.commands(file, action):
        if "apt-get" in command:
            continue
        here = command.replace("install clouddb.control", 'install "$COLLECTION_TARBALL"')
        status, printed = reader.shell.run(f"({here.replace('sh run_tests', 'sh with_server sh run_tests')})")
        assert status == 0, f"{command}\n{printed}"


def branches(reader: Reader) -> set[str]:
    url = f"{reader.base_url}/projects/wispy-lake-12345678/branches"
    response = requests.get(url, headers={"Authorization": f"Bearer {reader.api_key}"}, timeout=30)
    return {branch["name"] for branch in response.json()["branches"]}


@pytest.mark.parametrize(("schema", "file"), [("github-workflows", pipelines.GITHUB), ("gitlab-ci", pipelines.GITLAB)])
def test_pipeline_matches_its_schema(schema: str, file: str, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yml"
    path.write_text(pipelines.FILES[file], encoding="utf-8")
    arguments = ["--builtin-schema", f"vendor.{schema}", str(path)]
    subprocess.run([sys.executable, "-m", "check_jsonschema", *arguments], check=True)


def test_sandbox_is_removed(reader: Reader) -> None:
    follow_until(ON_THE_SANDBOX[-1], reader)
    assert REMOVE_SANDBOX in (GUIDES / "getting_started.rst").read_text(encoding="utf-8")
    reader.shell.run(REMOVE_SANDBOX)
    assert reader.base_url.startswith("http://127.0.0.1:")
    assert not list(reader.shell.directory.glob("sandbox*"))
    with pytest.raises(requests.ConnectionError):
        requests.get(reader.base_url, timeout=30)


def test_guides_say_what_they_need() -> None:
    for guide in set(ON_THE_SANDBOX) - WITHOUT_THE_SANDBOX:
        text = " ".join((GUIDES / f"{guide}.rst").read_text(encoding="utf-8").split())
        assert NEEDS in text.partition(".. contents::")[0], guide


def test_readme_shows_the_playbook_of_a_guide() -> None:
    [playbook] = [block.content for block in blocks_of("getting_started") if block.caption == "branch.yml"]
    assert f"```yaml\n{playbook}```" in README.read_text(encoding="utf-8")


def test_exceptions_exist_in_the_guides() -> None:
    blocks = [block for guide in guides() for block in blocks_of(guide)]
    assert set(NOT_RUN) <= {block.beginning for block in blocks}
    commands = {
        command.text
        for block in blocks
        if block.language == "console" and is_run(block)
        for command in commands_of(block.content)
    }
    assert {*REPLACED_COMMANDS, *NOT_CHECKED} <= commands
