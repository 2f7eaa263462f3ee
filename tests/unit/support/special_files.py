# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be at a path instead of a regular file."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest


def symbolic_link(path: Path) -> None:
    """A link to a regular file, whose content must not be read."""
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_text("{}")
    path.symlink_to(elsewhere)


def bound_socket(path: Path) -> None:
    # The path of a socket must be short.
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(before)


def hard_link(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_text("{}")
    os.link(elsewhere, path)


def hard_link_of_another_user(path: Path) -> None:
    hard_link(path)
    os.chown(path, 65534, 65534)


# What creates it, and how a message describes it.
SPECIAL_FILES: list[tuple[Callable[[Path], object], str]] = [
    (symbolic_link, "it is a symbolic link"),
    (lambda path: path.symlink_to("nowhere"), "it is a symbolic link"),
    (lambda path: path.symlink_to(path.name), "it is a symbolic link"),
    (os.mkfifo, "it is a named pipe"),
    (bound_socket, "it is a socket"),
    (lambda path: path.mkdir(), "it is a directory"),
]
special_files = pytest.mark.parametrize(
    ("create", "description"),
    [
        *SPECIAL_FILES,
        pytest.param(
            *(hard_link_of_another_user, "it has 2 hard links"),
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user"),
        ),
    ],
    ids=["link", "dangling link", "link to itself", "FIFO", "socket", "directory", "hard link"],
)
