# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of the tarball, its installation and its import into Galaxy."""

from __future__ import annotations

import os
import re
import sys
import tarfile
from pathlib import Path

import pytest

from .conftest import VERSION, Repository, run

CONTENTS = {
    *("CHANGELOG.rst", "COPYING", "FILES.json", "MANIFEST.json", "README.md"),
    *("CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSES", "REUSE.toml", "SECURITY.md"),
    *("changelogs", "docs", "examples", "extensions", "meta", "playbooks", "plugins", "roles", "tests"),
}


def test_content_without_development_files(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        paths = [Path(name) for name in archive.getnames()]
    assert {path.parts[0] for path in paths} == CONTENTS
    hidden = {str(path) for path in paths if path.name.startswith(".") or path.name == "__pycache__"}
    # What a project like the example has.
    assert hidden == {"examples/project/.github", "examples/project/.gitignore"}
    for folder, file in (("changelogs", "changelog.yaml"), ("tests", "config.yml")):
        assert {str(path) for path in paths if path.parts[0] == folder} == {folder, f"{folder}/{file}"}


def test_examples_are_complete(tarball: Path, released: Repository) -> None:
    with tarfile.open(tarball) as archive:
        names = {
            member.name for member in archive.getmembers() if member.isfile() and member.name.startswith("examples/")
        }
    assert names == set(released.git("ls-files", "examples").splitlines())


def test_ansible_galaxy_installs_and_verifies(tarball: Path, tmp_path: Path) -> None:
    folder = ("--collections-path", str(tmp_path))
    run("ansible-galaxy", "collection", "install", "--offline", *folder, str(tarball), cwd=tmp_path)
    output = run("ansible-galaxy", "collection", "verify", "--offline", *folder, "clouddb.control", cwd=tmp_path)
    assert f"Successfully verified that checksums for 'clouddb.control:{VERSION}' are internally consistent" in output


@pytest.mark.smoke
def test_galaxy_importer_reports_nothing(tarball: Path, tmp_path: Path) -> None:
    # It has an environment of its own (make test-all), whose ansible-lint it finds on PATH.
    programs = Path(sys.prefix).resolve().with_name(".venv-release") / "bin"
    path = f"PATH={programs}{os.pathsep}{os.environ['PATH']}"
    output = run("env", path, "python", "-m", "galaxy_importer.main", str(tarball), cwd=tmp_path)
    assert re.findall(r"^(?:WARNING|ERROR).*", output, re.MULTILINE) == []
    # galaxy-importer exits with 0 even if it does not find ansible-lint.
    assert "...ansible-lint run complete" in output
    assert "Importer processing completed successfully" in output
