# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the collection's tarball in .build/dist: ``release.py [VERSION]``.

The same commit makes the same bytes. With a version, it refuses to build what is not that release: the version's tag,
metadata and changelog have to say the same.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from workspace import CHECKOUT, exit_on_signals, temporary_workspace

DIST = CHECKOUT / ".build" / "dist"


def git(*arguments: str) -> str:
    """What git prints; nothing if it fails."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(
        command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    ).stdout.strip()


def metadata() -> dict[str, str]:
    """What galaxy.yml says."""
    found: dict[str, str] = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))
    return found


def disagreements(version: str) -> Iterator[str]:
    """Whatever says that the checkout is not this release."""
    if git("status", "--porcelain"):
        yield "The working tree has changes that are not committed."
    head, tagged = git("rev-parse", "HEAD"), git("rev-parse", "--verify", "--quiet", f"refs/tags/{version}^{{commit}}")
    if not tagged:
        yield f"There is no git tag {version}."
    elif tagged != head:
        yield f"The git tag {version} is another commit than the one checked out."

    if str(metadata()["version"]) != version:
        yield f"galaxy.yml has the version {metadata()['version']}."
    code = (CHECKOUT / "plugins" / "module_utils" / "_version.py").read_text(encoding="utf-8")
    if f'COLLECTION_VERSION = "{version}"' not in code:
        yield "plugins/module_utils/_version.py has another version."

    changes = CHECKOUT / "changelogs" / "changelog.yaml"
    releases = yaml.safe_load(changes.read_text(encoding="utf-8"))["releases"] if changes.exists() else {}
    if version not in releases:
        yield f"changelogs/changelog.yaml has no release {version}."
    if not re.search(
        rf"^v{re.escape(version)}$", (CHECKOUT / "CHANGELOG.rst").read_text(encoding="utf-8"), re.MULTILINE
    ):
        yield f"CHANGELOG.rst has no section v{version}."
    for fragment in sorted((CHECKOUT / "changelogs" / "fragments").glob("*.y*ml")):
        yield f"changelogs/fragments/{fragment.name} is in no release."


def normalize(tarball: Path, seconds: int) -> None:
    """Rewrite a collection's tarball with its files in the order of their names, and of this age."""
    with tarfile.open(tarball) as archive:
        members = {member.name: member for member in archive.getmembers()}
        contents = {name: file.read() for name, member in members.items() if (file := archive.extractfile(member))}

    # The build lists the files in the file system's order, and the manifest holds the list's checksum.
    files = json.loads(contents["FILES.json"])
    files["files"].sort(key=lambda file: file["name"])
    contents["FILES.json"] = json.dumps(files, indent=1).encode()
    manifest = json.loads(contents["MANIFEST.json"])
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(contents["FILES.json"]).hexdigest()
    contents["MANIFEST.json"] = json.dumps(manifest, indent=1).encode()

    with (
        tarball.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=seconds) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, member in sorted(members.items()):
            member.mtime, member.pax_headers = seconds, {}
            member.size = len(contents.get(name, b""))
            archive.addfile(member, io.BytesIO(contents[name]) if name in contents else None)


def build() -> Path:
    """Build the tarball of the files as they are in the working tree."""
    shutil.rmtree(DIST, ignore_errors=True)
    with (
        temporary_workspace() as workspace,
        workspace.start("ansible-galaxy", "collection", "build", "--output-path", str(DIST), piped=True) as process,
    ):
        said = process.communicate()[0]
    if process.returncode:
        sys.exit(said)
    (tarball,) = DIST.glob("*.tar.gz")
    normalize(tarball, int(git("log", "-1", "--format=%ct")))
    return tarball


def main() -> None:
    """Build, or say why not."""
    exit_on_signals()
    for version in sys.argv[1:]:
        if reasons := list(disagreements(version)):
            sys.exit(
                "\n".join([f"This is not {version}, so nothing is built:", *(f"- {reason}" for reason in reasons)])
            )
    tarball = build()
    print(f"{hashlib.sha256(tarball.read_bytes()).hexdigest()}  {tarball.relative_to(CHECKOUT)}")


if __name__ == "__main__":
    main()
