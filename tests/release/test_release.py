# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release is built from what agrees with itself, and always to the same bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import VERSION, Repository

VERSION_FILE = "plugins/module_utils/_version.py"


def test_the_same_commit_makes_the_same_bytes(tarball: Path, clone: Repository) -> None:
    os.umask(0o077)
    for path in clone.path.rglob("*.yml"):
        path.chmod(0o600)
        os.utime(path, (1, 1))
    done = clone.release()
    assert done.returncode == 0, done.stdout
    (again,) = clone.tarballs()
    assert again.name == tarball.name == f"clouddb-control-{VERSION}.tar.gz"
    assert again.read_bytes() == tarball.read_bytes()


def leave_unfinished_work(repository: Repository) -> None:
    (repository.path / "plugins" / "unfinished.py").touch()


def change_a_file(repository: Repository) -> None:
    repository.replace("README.md", "clouddb", "clouddb ")


def forget_the_tag(repository: Repository) -> None:
    repository.git("tag", "--delete", VERSION)


def go_on_after_the_tag(repository: Repository) -> None:
    repository.git("commit", "--quiet", "--allow-empty", "--message=More")


def tell_galaxy_another_version(repository: Repository) -> None:
    repository.replace("galaxy.yml", VERSION, "7.8.8")
    repository.commit()
    repository.tag()


def tell_the_service_another_version(repository: Repository) -> None:
    repository.replace(VERSION_FILE, VERSION, "7.8.8")
    repository.commit()
    repository.tag()


def forget_the_changelog(repository: Repository) -> None:
    repository.git("rm", "--quiet", "changelogs/changelog.yaml")
    repository.commit()
    repository.tag()


def forget_the_release_notes(repository: Repository) -> None:
    repository.replace("CHANGELOG.rst", f"\nv{VERSION}\n", "\nv7.8.8\n")
    repository.commit()
    repository.tag()


def forget_a_fragment(repository: Repository) -> None:
    folder = repository.path / "changelogs" / "fragments"
    folder.mkdir(exist_ok=True)
    (folder / "late.yml").write_text("bugfixes: [late]\n", encoding="utf-8")
    repository.commit()
    repository.tag()


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [
        (leave_unfinished_work, "The working tree has changes that are not committed."),
        (change_a_file, "The working tree has changes that are not committed."),
        (forget_the_tag, f"There is no git tag {VERSION}."),
        (go_on_after_the_tag, f"The git tag {VERSION} is another commit than the one checked out."),
        (tell_galaxy_another_version, "galaxy.yml has the version 7.8.8."),
        (tell_the_service_another_version, f"{VERSION_FILE} has another version."),
        (forget_the_changelog, f"changelogs/changelog.yaml has no release {VERSION}."),
        (forget_the_release_notes, f"CHANGELOG.rst has no section v{VERSION}."),
        (forget_a_fragment, "changelogs/fragments/late.yml is in no release."),
    ],
)
def test_what_disagrees_is_not_released(clone: Repository, mistake: object, reason: str) -> None:
    assert callable(mistake)
    mistake(clone)
    done = clone.release()
    assert done.returncode == 1
    assert done.stdout.splitlines() == [f"This is not {VERSION}, so nothing is built:", f"- {reason}"]
    assert clone.tarballs() == []
