# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the guides are run otherwise than they are read, and why."""

from __future__ import annotations

# What a reader replaces by values of their own; each guide is run with those of its sandbox.
EXAMPLE_BASE_URL = "https://control.example.com/api/v2"
EXAMPLE_API_KEY = "9v1faketcjbl4sn1013keyd43n2a8qlfakeog8yvp40hx16keyjo1bpds4y2dfms3"

# Commands that something else is run for: the replacement, and the reason.
STAND_INS = {
    "ansible-galaxy collection install clouddb.control": (
        'ansible-galaxy collection install "$COLLECTION_TARBALL"',
        "The collection is tested before it is published: it is installed from the tarball built of this checkout.",
    ),
}

# A guide whose blocks are messages; test_troubleshooting.py holds them against the code.
MESSAGES_GUIDE = "troubleshooting"

# Blocks that are not run: the guide, how the block begins, and the reason.
NOT_RUN = {
    ("architecture", "  playbook task                                               inventory source"): "A drawing.",
    (
        "job_templates",
        "$ ansible-builder build --file execution-environment.yml --tag registry.example.com/platform/clouddb-ee:1.0.0",
    ): ("It needs a container runtime and a registry; tests/awx goes as far as it can without."),
    (
        "job_templates",
        "$ ansible-playbook clouddb-awx/configure.yml",
    ): "It needs an AWX; tests/awx has one that stands in for it.",
    (
        "index",
        "$ git clone https://github.com/clouddb/ansible-control",
    ): "The checkout is here, and make test runs the quickstart.",
    (
        "contributing",
        "$ git clone https://github.com/clouddb/ansible-control",
    ): "What it leads to is what runs these tests.",
    (
        "eda",
        "$ ansible-rulebook --rulebook clouddb.control.operations --inventory hosts.yml",
    ): "It runs until it is stopped; tests/eda runs it.",
    ("eda", "clouddb:"): "What an event looks like; nothing is done with it.",
}
