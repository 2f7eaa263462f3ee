# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task in a fork and the same task as an ordinary module have the same result, with the same types, and print the same."""

from __future__ import annotations

import difflib
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from ansible_collections.clouddb.control.tests.unit.support.playbook import ROOT, Playbook
from ansible_collections.clouddb.control.tests.unit.support.sandbox import running_sandbox

HERE = Path(__file__).parent
COLLECTION = Path("ansible_collections", "clouddb", "control")
SEED = yaml.safe_load((ROOT / COLLECTION / "playbooks/files/guides_account.yml").read_text(encoding="utf-8"))
PLAYS = (HERE / "both_ways.yml").read_text(encoding="utf-8")
ONE_TASK = """
- hosts: own
  gather_facts: false
  ignore_errors: true
  tasks: [{name: list, clouddb.control.project_info: {}}, {name: wait, clouddb.control.operation_wait: {operations: []}}]
"""
# What differs between two runs of the same task, and what a shell adds.
RANDOM = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"\b[0-9a-z]{60,}\b", "SECRET"),
    (r"\b(br|ep)-[a-z]+-[a-z]+-\d{8}", "ID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)?", "TIME"),
    (r"127\.0\.0\.1:\d+", "HOST"),
    (r"\d+\.\d+(?=, \"|})| \d+ s\b|(?<=\"polls\": )\d+|0x[0-9a-f]{6,}", "NUMBER"),
    (r"Killed\\n", ""),
    # It begins with how the module was started, and lacks the source if that is in an archive.
    (r"Traceback \(most recent call last\):.*?(?=\w+Error: )", "TRACEBACK "),
    (r"<frame at .*?>", "FRAME"),
    (r"FOLDER/[^\"]*/ansible_collections/", "ansible_collections/"),
)


def collection_with_probe(root: Path) -> Path:
    """A collection path with links to the collection, and the module probe."""
    original, copy = ROOT / COLLECTION, root / COLLECTION
    for name in ("", "plugins", "plugins/modules", "plugins/action"):
        (copy / name).mkdir(parents=True)
        for path in (original / name).iterdir():
            if path.name not in ("plugins", "modules", "action"):
                (copy / name / path.name).symlink_to(path)
    shutil.copy(HERE.parents[1] / "support" / "probe.py", copy / "plugins" / "modules")
    shutil.copy(original / "plugins" / "action" / "project_info.py", copy / "plugins" / "action" / "probe.py")
    return root


def run(folder: Path, plays: str, is_fork: bool, **environment: str) -> list[str]:
    """The results of all tasks and then what Ansible has printed, without what differs between two runs."""
    folder.mkdir()
    with running_sandbox(folder, **SEED) as service:
        service.control("PUT", "/clock", {"speed": 1000})
        playbook = Playbook(folder / "run", service, collection_with_probe(folder / "root"))
        playbook.is_background = plays != PLAYS
        ran = playbook.run(plays, "--extra-vars", json.dumps({"clouddb_fork": is_fork}), **environment)
    assert ran.status == 0, ran.stdout + ran.stderr
    texts = [*(json.dumps(result, sort_keys=True) for result in ran.results), *(ran.stdout + ran.stderr).splitlines()]
    for pattern, name in ((re.escape(str(folder)), "FOLDER"), *RANDOM):
        texts = [re.sub(pattern, name, text) for text in texts]
    return texts


@pytest.mark.soak
@pytest.mark.parametrize("plays", [PLAYS, ONE_TASK], ids=["all cases", "no requests"])
def test_results_and_output(tmp_path: Path, plays: str) -> None:
    broken = tmp_path / "broken"
    (broken / "requests").mkdir(parents=True)
    (broken / "requests" / "__init__.py").write_text("raise ImportError('not installed')")
    environment = {} if plays is PLAYS else {"PYTHONPATH": str(broken)}
    # Paths of the same length, because Ansible wraps warnings.
    fork = run(tmp_path / "fork", plays, True, **environment)
    ordinary = run(tmp_path / "ansi", plays, False, **environment)
    different = "\n".join(difflib.unified_diff(fork, ordinary, lineterm="", n=0))
    assert not different, different
