# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A secret's file that is mounted into a container, so that it can only be written in place, on a disk that is really full."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.clouddb.control.plugins.module_utils._errors import SecretFileError
from ansible_collections.clouddb.control.plugins.module_utils._files.secret_file import SecretFile
from ansible_collections.clouddb.control.tests.unit.plugins.faults.child_process import in_child

CLONE_NEWNS = 0x00020000
PAGE = 4096
OLD = "old-secret"


def may_mount() -> bool:
    """Whether this user may mount in a namespace of its own: root may, unless a container forbids it."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0


def mount_full_disk(folder: Path) -> Path:
    """Mount a tmpfs that OLD fills, and a file of it into the folder, in a mount namespace of this process."""
    assert ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0
    disk, mounted = folder / "disk", folder / "secrets" / "key"
    for created in (disk, mounted.parent):
        created.mkdir()
    mounted.touch()
    for arguments in (
        ["--make-rprivate", "/"],
        ["-t", "tmpfs", "-o", f"size={PAGE}", "none", str(disk)],
    ):
        subprocess.run(["mount", *arguments], check=True)
    (disk / "key").write_text(OLD)
    subprocess.run(["mount", "--bind", str(disk / "key"), str(mounted)], check=True)
    return mounted


@pytest.mark.skipif(not may_mount(), reason="only root can mount a disk")
@pytest.mark.parametrize(
    ("size", "unsafe_writes", "message"),
    [
        (PAGE + 1, True, "can't be written: No space left on device."),
        (
            PAGE,
            False,
            "can't be written: Device or resource busy. If it is mounted into a container, set unsafe_writes.",
        ),
        (PAGE, True, None),
    ],
    ids=["too long", "not allowed", "written"],
)
def test_failed_write_keeps_the_old_secret(tmp_path: Path, size: int, unsafe_writes: bool, message: str | None) -> None:
    new = "n" * size

    def run(send: Any) -> None:
        mounted = mount_full_disk(tmp_path)
        file = SecretFile(str(mounted), lambda path: False, unsafe_writes)
        error = ""
        try:
            with file.held(), file.replacement() as write:
                write(new)
        except SecretFileError as failed:
            error = str(failed)
        send(json.dumps([error, mounted.read_text(), len(list(mounted.parent.glob("*.tmp")))]))

    error, content, temporary_files = json.loads(in_child(run))
    assert error == (f"dest: {tmp_path}/secrets/key {message}" if message else "")
    assert content == (OLD if message else new)
    assert temporary_files == 0
