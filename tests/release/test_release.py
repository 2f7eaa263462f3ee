# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases are consistent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import DATE, VERSION, Repository

VERSION_FILE = "plugins/module_utils/_http/session.py"


def add_untracked_file(repository: Repository) -> None:
    (repository.path / "plugins" / "unfinished.py").touch()


def git(*arguments: str) -> Callable[[Repository], object]:
    return lambda repository: repository.git(*arguments)


def delete_changelog(repository: Repository) -> None:
    repository.git("rm", "--quiet", "changelogs/changelog.yaml")
    repository.commit_and_tag()


def add_fragment(repository: Repository) -> None:
    folder = repository.path / "changelogs" / "fragments"
    folder.mkdir(exist_ok=True)
    (folder / "late.yml").write_text("bugfixes: [late]\n", encoding="utf-8")
    repository.commit_and_tag()


def committed(*change: str) -> Callable[[Repository], None]:
    """Replaces a text in a file before the tag."""

    def prepare(repository: Repository) -> None:
        repository.replace(*change)
        repository.commit_and_tag()

    return prepare


OTHER_DATE = committed("changelogs/changelog.yaml", f"Released on {DATE}.", "Released on 2026-01-30.")
SUMMARY = f"The release_summary of {VERSION} in changelogs/changelog.yaml does not contain 'Released on {DATE}.'."


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (add_untracked_file, "The working tree has uncommitted changes."),
        (lambda clone: clone.replace("README.md", "clouddb", "clouddb "), "The working tree has uncommitted changes."),
        (git("tag", "--delete", VERSION), f"The git tag {VERSION} does not exist."),
        (
            git("commit", "--quiet", "--allow-empty", "--message=More"),
            f"The git tag {VERSION} is not the checked-out commit.",
        ),
        (committed("galaxy.yml", VERSION, "7.8.8"), "galaxy.yml has the version 7.8.8."),
        (committed(VERSION_FILE, VERSION, "7.8.8"), f"{VERSION_FILE} has another version."),
        (delete_changelog, f"changelogs/changelog.yaml has no release {VERSION}."),
        (OTHER_DATE, SUMMARY),
        (committed("CHANGELOG.rst", f"\nv{VERSION}\n", "\nv7.8.8\n"), f"CHANGELOG.rst has no section v{VERSION}."),
        (add_fragment, "changelogs/fragments/late.yml is not part of a release."),
    ],
)
def test_inconsistent_release_is_refused(
    clone: Repository, prepare: Callable[[Repository], object], reason: str
) -> None:
    prepare(clone)
    done = clone.release()
    assert done.returncode == 1
    assert done.stdout == f"The tarball was not built: the checkout is not release {VERSION}.\n- {reason}\n"
    assert clone.tarballs() == []
