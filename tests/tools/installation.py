# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user has: an environment of their own, this collection from its tarball, and other collections."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from workspace import CHECKOUT

# Variables with these prefixes configure the tests or a developer's other work.
REMOVED_PREFIXES = ("ANSIBLE_", "CLOUDDB_", "MOLECULE_", "PYTEST_")


def user_environment(home: Path, **variables: str) -> dict[str, str]:
    """The environment of a user with this home folder, with the programs there and those of this virtual environment."""
    real = os.environ
    return {
        **{name: value for name, value in real.items() if not name.startswith(REMOVED_PREFIXES)},
        "ANSIBLE_NOCOLOR": "true",
        "COLUMNS": "160",
        "HOME": str(home),
        "PATH": os.pathsep.join([str(home / "bin"), str(Path(sys.executable).parent), real["PATH"]]),
        # pip uses the package index and the cache of the user who runs the tests.
        "XDG_CACHE_HOME": real.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "XDG_CONFIG_HOME": real.get("XDG_CONFIG_HOME", str(Path.home() / ".config")),
        **variables,
    }


def run_program(command: list[str], folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program in a directory, whatever its exit code. C(stdout) is the complete output."""
    return subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )


def build_tarball(folder: Path) -> Path:
    """Build the tarball of this collection in the folder, and return its path."""
    _galaxy(user_environment(folder), "build", "--output-path", str(folder), str(CHECKOUT))
    [tarball] = folder.glob("clouddb-control-*.tar.gz")
    return tarball


def install_collection(home: Path) -> Path:
    """Build the tarball in a user's home folder and install it there. Returns the folder of the user's collections."""
    collections = home / ".ansible" / "collections"
    options = ("--offline", "--collections-path", str(collections))
    _galaxy(user_environment(home), "install", *options, str(build_tarball(home)))
    return collections


def download_collections(version: str, *names: str) -> Path:
    """The folder of these collections, from this version of PyPI's package ``ansible``, so that the tests do not need Galaxy.

    They are downloaded once for all test runs, into the virtual environment.
    """
    target = Path(sys.prefix) / f"ansible-{version}"
    if target.exists():
        return target
    prefixes = tuple(f"ansible_collections/{name.replace('.', '/')}/" for name in names)
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        # The package may need a newer Python than its collections do.
        options = ("--no-deps", "--only-binary=:all:", "--python-version=3.13", "--dest", folder)
        download = ("pip", "download", "-qq", "--disable-pip-version-check", *options, f"ansible=={version}")
        subprocess.run([sys.executable, "-m", *download], check=True)
        [wheel] = Path(folder).glob("*.whl")
        extracted = Path(folder) / "collections"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(extracted, [name for name in archive.namelist() if name.startswith(prefixes)])
        extracted.rename(target)
    return target


def _galaxy(env: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-m", "ansible", "galaxy", "collection", *arguments]
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
