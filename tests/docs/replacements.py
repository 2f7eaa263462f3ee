# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between the guides and the commands that the tests run, with the reasons."""

from __future__ import annotations

from blocks import Block

# Readers replace these by their own values, the tests by those of the sandbox.
EXAMPLE_BASE_URL = "https://control.example.com/api/v2"
EXAMPLE_API_KEY = "9v1faketcjbl4sn1013keyd43n2a8qlfakeog8yvp40hx16keyjo1bpds4y2dfms3"

# Commands that are replaced: the replacement and the reason.
REPLACED_COMMANDS = {
    "ansible-galaxy collection install clouddb.control": (
        'ansible-galaxy collection install "$COLLECTION_TARBALL"',
        "The tests run before the collection is published, so they install the tarball built from this checkout.",
    ),
}

# Commands that are not run in check mode first, and the reason.
NOT_CHECKED = {
    "ansible-playbook with_uri.yml": "It shows what users do without this collection. Check mode skips ansible.builtin.uri.",
}

# Guides whose blocks are messages; test_troubleshooting.py compares them with the code.
MESSAGES_GUIDES = ("troubleshooting", "troubleshooting_changes")
# test_upgrading.py runs the tasks in the blocks of the other one.
TESTED_ELSEWHERE = (*MESSAGES_GUIDES, "upgrading")

# Blocks that are not run: the guide with the block's first line, and the reason.
NOT_RUN = {
    "job_templates: $ ansible-builder build --file ~/.ansible/collections/ansible_collections/clouddb/control/extensions/awx/"
    "execution-environment.yml \\": "It needs a container runtime and a registry; tests/awx tests the steps before.",
    "job_templates: $ ansible-playbook clouddb-awx/configure.yml": "It needs AWX; tests/awx runs it against a fake.",
    "cookbook: - name: Invite a colleague to the organization": "The sandbox lacks these; tests/openapi checks them.",
    "runner: $ ansible-navigator run preview.yml -e pull_request=7": "It needs another project; tests/project runs it.",
    "contributing: $ git clone https://github.com/clouddb/ansible-control": "These commands run the tests themselves.",
    "eda: $ ansible-rulebook --rulebook clouddb.control.operations --inventory localhost.yml": (
        "It runs until it is interrupted; tests/eda runs it."
    ),
    "eda: clouddb:": "It shows an event.",
    "account_report: metric_relabel_configs:": "It is a part of the configuration of Prometheus.",
    "key_rotation: create ──►  deploy ──►  confirm ──►  grace period ──►  revoke": "It shows the steps of a rotation.",
    "performance: clouddb.control: The module runs in a process that Ansible starts. The task has become.": (
        "It shows a line of -vvv."
    ),
    "architecture: playbook task            inventory, variable   rulebook          role account_report": (
        "It shows the layers."
    ),
}


def is_run(block: Block) -> bool:
    """Whether the tests write the file or run the commands of a block."""
    return block.guide not in TESTED_ELSEWHERE and block.beginning not in NOT_RUN
