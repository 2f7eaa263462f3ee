# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions that the collection supports. noxfile.py tests them; a unit test compares them with the documents."""

from __future__ import annotations

# ansible-core on the controller, and the Python versions that each release supports.
ANSIBLE_CORE = {
    "2.16": ("3.10", "3.11", "3.12"),
    "2.17": ("3.10", "3.11", "3.12"),
    "2.18": ("3.11", "3.12", "3.13"),
    "2.19": ("3.11", "3.12", "3.13"),
    "2.20": ("3.12", "3.13", "3.14"),
    "2.21": ("3.12", "3.13", "3.14"),
    "2.22": ("3.13", "3.14", "3.15"),
}

# The libraries of Enterprise Linux 9 and Ubuntu 22.04. The tests of the oldest ansible-core with the oldest Python use them.
OLDEST_LIBRARIES = ("requests==2.25.1", "urllib3==1.26.5")

# Python versions where the modules run.
TARGET_PYTHON = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
