# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A repository with a release made as CONTRIBUTING.md describes, and clones of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from installation import run_program

COLLECTION = Path(__file__).parents[2]
VERSION = "7.8.9"
DATE = "2026-01-31"
FRAGMENT = f"""\
release_summary: Released on {DATE}.
minor_changes:
  - project_info - add an option.
"""


def run(*command: str, cwd: Path) -> str:
    """Run a program that must succeed, and return its output."""
    done = run_program([*command], cwd)
    assert done.returncode == 0, done.stdout
    return done.stdout


class Repository:
    """A git repository of the collection."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *arguments: str) -> str:
        return run(
            "git", "-c", "user.name=releaser", "-c", "user.email=releaser@example.com", *arguments, cwd=self.path
        )

    def replace(self, name: str, old: str, new: str) -> None:
        file = self.path / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    def commit_and_tag(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=Release")
        self.git("tag", "--force", VERSION)

    def release(self) -> subprocess.CompletedProcess[str]:
        return run_program([sys.executable, "tests/tools/release.py", VERSION], self.path)

    def tarballs(self) -> list[Path]:
        return list(self.path.glob(".build/dist/*"))


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    path = tmp_path_factory.mktemp("released") / "ansible_collections" / "clouddb" / "control"
    shutil.copytree(COLLECTION, path, ignore=shutil.ignore_patterns(".git", "output"))
    repository = Repository(path)
    repository.git("init", "--quiet")
    version = yaml.safe_load((path / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    for name in ("galaxy.yml", "plugins/module_utils/_http/session.py"):
        repository.replace(name, version, VERSION)
    (path / "changelogs" / "fragments" / "summary.yml").write_text(FRAGMENT, encoding="utf-8")
    run("antsibull-changelog", "release", "--date", DATE, cwd=path)
    repository.commit_and_tag()
    return repository


@pytest.fixture
def clone(released: Repository, tmp_path: Path) -> Repository:
    released.git("clone", "--quiet", str(released.path), str(tmp_path / "clone"))
    return Repository(tmp_path / "clone")


@pytest.fixture(scope="session")
def tarball(released: Repository) -> Path:
    done = released.release()
    assert done.returncode == 0, done.stdout
    (path,) = released.tarballs()
    return path
