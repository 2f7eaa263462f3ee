# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the documentation site in .build/docs: the guides, and a page for each plugin and role.

Any warning fails the build, and so does a link that leads nowhere. It needs no network.
"""

from __future__ import annotations

import shutil
import sys
import zlib
from pathlib import Path

SITE = Path(__file__).resolve().parent
CHECKOUT = SITE.parents[1]
sys.path.insert(0, str(CHECKOUT / "tests" / "tools"))

from links import broken_links  # noqa: E402
from workspace import Workspace, exit_on_signals, temporary_workspace  # noqa: E402

TARGET = CHECKOUT / ".build" / "docs"

# Where the lists begin on the front page of antsibull-docs: the first section of extra-docs.yml.
FIRST_LIST = "Guides\n------\n"

# What these lists leave out.
LAST_LIST = "\n.. toctree::\n   :hidden:\n\n   environment_variables\n"

# The labels and environment variables in Ansible's documentation that the plugins' pages link to.
ANSIBLE_LABELS = {
    "action_plugins": "plugins/action.html#action-plugins",
    "ansible_collections.ansible.builtin.uri_module": "collections/ansible/builtin/uri_module.html",
    "ansible_configuration_settings": "reference_appendices/config.html#ansible-configuration-settings",
    "common_return_values": "reference_appendices/common_return_values.html#common-return-values",
}

ANSIBLE_VARIABLES = [f"ANSIBLE_CACHE_PLUGIN{part}" for part in ("", "_CONNECTION", "_PREFIX", "_TIMEOUT")]


def write_sources(workspace: Workspace, sources: Path) -> None:
    """What Sphinx reads: the plugins' pages, the guides with their figures, the front page."""
    sources.mkdir(mode=0o755)
    options = ("--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", str(sources))
    run(
        workspace,
        "antsibull-docs",
        "--config-file",
        str(SITE / "antsibull-docs.cfg"),
        "collection",
        *options,
        "clouddb.control",
    )
    # antsibull-docs takes the guides, but not their figures.
    guides = workspace.collection / "docs" / "docsite" / "rst"
    for figure in guides.rglob("*.svg"):
        target = sources / "docsite" / figure.relative_to(guides)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(figure, target)
    # Its front page begins with facts from galaxy.yml; ours says what the collection is for, and its lists follow.
    front = sources / "index.rst"
    _head, first_list, lists = front.read_text(encoding="utf-8").partition(FIRST_LIST)
    if not first_list:
        sys.exit(f"The front page of antsibull-docs has changed: it has no {FIRST_LIST!r}.")
    front.write_text(
        (SITE / "index.rst").read_text(encoding="utf-8") + first_list + lists + LAST_LIST, encoding="utf-8"
    )


def write_inventory(path: Path) -> None:
    """An inventory for intersphinx (its format, version 2)."""
    header = "# Sphinx inventory version 2\n# Project: Ansible\n# Version: \n# The remainder of this file is compressed using zlib.\n"
    labels = [f"{label} std:label -1 {address} {label}\n" for label, address in ANSIBLE_LABELS.items()]
    variables = [
        f"{name} std:envvar -1 reference_appendices/config.html#envvar-{name} -\n" for name in ANSIBLE_VARIABLES
    ]
    path.write_bytes(header.encode() + zlib.compress("".join(labels + variables).encode()))


def run(workspace: Workspace, program: str, *arguments: str) -> None:
    """Run a program in the copy of the collection; leave if it fails."""
    with workspace.start(program, *arguments) as process:
        if process.wait():
            sys.exit(f"{program} failed.")


def main() -> None:
    exit_on_signals()
    with temporary_workspace() as workspace:
        sources, built = workspace.root / "sources", workspace.root / "built"
        write_sources(workspace, sources)
        write_inventory(sources / "ansible.inv")
        run(
            workspace,
            "sphinx-build",
            "-W",
            "-n",
            "-q",
            "--keep-going",
            "-b",
            "html",
            "-c",
            str(SITE),
            str(sources),
            str(built),
        )
        broken = broken_links(built, workspace.collection)
        if broken:
            sys.exit("\n".join(["Links that lead nowhere:", *broken]))
        shutil.rmtree(TARGET, ignore_errors=True)
        shutil.copytree(built, TARGET, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))
    print(f"The site is in {TARGET / 'index.html'}")


if __name__ == "__main__":
    main()
