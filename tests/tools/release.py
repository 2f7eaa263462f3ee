# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the tarball of a release in .build/dist: ``release.py VERSION``.

It fails unless the checked-out commit has the tag of that version, and metadata and changelog match it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from workspace import CHECKOUT, exit_on_signals, temporary_workspace

DIST = CHECKOUT / ".build" / "dist"


def git(*arguments: str) -> str:
    """Run git and return its output, or an empty string if it fails."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(
        command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    ).stdout.strip()


def metadata() -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))
    return found


def mismatches(version: str) -> Iterator[str]:
    """Each reason why the checkout is not this release."""
    if git("status", "--porcelain"):
        yield "The working tree has uncommitted changes."
    head, tagged = git("rev-parse", "HEAD"), git("rev-parse", "--verify", "--quiet", f"refs/tags/{version}^{{commit}}")
    if not tagged:
        yield f"The git tag {version} does not exist."
    elif tagged != head:
        yield f"The git tag {version} is not the checked-out commit."

    if str(metadata()["version"]) != version:
        yield f"galaxy.yml has the version {metadata()['version']}."
    code = (CHECKOUT / "plugins" / "module_utils" / "_http" / "session.py").read_text(encoding="utf-8")
    if f'COLLECTION_VERSION = "{version}"' not in code:
        yield "plugins/module_utils/_http/session.py has another version."

    changes = CHECKOUT / "changelogs" / "changelog.yaml"
    releases = yaml.safe_load(changes.read_text(encoding="utf-8"))["releases"] if changes.exists() else {}
    if version not in releases:
        yield f"changelogs/changelog.yaml has no release {version}."
    elif (dated := f"Released on {releases[version]['release_date']}.") not in str(
        releases[version].get("changes", {}).get("release_summary")
    ):
        yield f"The release_summary of {version} in changelogs/changelog.yaml does not contain {dated!r}."
    if not re.search(
        rf"^v{re.escape(version)}$", (CHECKOUT / "CHANGELOG.rst").read_text(encoding="utf-8"), re.MULTILINE
    ):
        yield f"CHANGELOG.rst has no section v{version}."
    for fragment in sorted((CHECKOUT / "changelogs" / "fragments").glob("*.y*ml")):
        yield f"changelogs/fragments/{fragment.name} is not part of a release."


def build() -> Path:
    """Build the tarball from the files in the working tree and return its path."""
    shutil.rmtree(DIST, ignore_errors=True)
    with (
        temporary_workspace() as workspace,
        workspace.start("ansible-galaxy", "collection", "build", "--output-path", str(DIST), piped=True) as process,
    ):
        output = process.communicate()[0]
    if process.returncode:
        sys.exit(output)
    (tarball,) = DIST.glob("*.tar.gz")
    return tarball


def main() -> None:
    """Build the tarball, or print the reasons against it."""
    exit_on_signals()
    version = sys.argv[1]
    if reasons := [f"- {reason}" for reason in mismatches(version)]:
        sys.exit("\n".join([f"The tarball was not built: the checkout is not release {version}.", *reasons]))
    tarball = build()
    print(f"{hashlib.sha256(tarball.read_bytes()).hexdigest()}  {tarball.relative_to(CHECKOUT)}")


if __name__ == "__main__":
    main()
