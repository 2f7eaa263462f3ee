# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the documentation site in .build/docs: the guides, and a page for each plugin and role.

Warnings, such as broken links between pages, fail the build. It needs no network.
"""

from __future__ import annotations

import re
import runpy
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import yaml

SITE = Path(__file__).resolve().parent
CHECKOUT = SITE.parents[1]
sys.path.insert(0, str(CHECKOUT / "tests" / "tools"))

from workspace import Workspace, exit_on_signals, temporary_workspace  # noqa: E402

TARGET = CHECKOUT / ".build" / "docs"

# The pages of the plugins in the menu: a caption for each ending of their names. Only roles use the internal ones.
KINDS = {"module": "Modules", "role": "Roles", "inventory": "Plugins", "lookup": "Lookups"}
INTERNAL = ("api_key_deployment_module", "api_key_rotation_module", "*_filter")

# The line of the front page that stands for the list of modules.
MODULES = "   .. modules"

# Labels and environment variables in Ansible's documentation to which the plugins' pages link.
ANSIBLE_LABELS = {
    "action_plugins": "plugins/action.html#action-plugins",
    "ansible_configuration_settings": "reference_appendices/config.html#ansible-configuration-settings",
    "common_return_values": "reference_appendices/common_return_values.html#common-return-values",
}

ANSIBLE_VARIABLES = [f"ANSIBLE_CACHE_PLUGIN{part}" for part in ("", "_CONNECTION", "_PREFIX", "_TIMEOUT")]


def write_error_matrix(guides: Path) -> None:
    """Write the page with the table that the tests of errors use, and add it to the menu."""
    matrix = runpy.run_path(str(CHECKOUT / "tests" / "unit" / "plugins" / "faults" / "matrix.py"))
    (guides / "fault_matrix.rst").write_text(matrix["page"](), encoding="utf-8")
    pages = guides.parent / "extra-docs.yml"
    after = "      - reliability\n"
    pages.write_text(
        pages.read_text(encoding="utf-8").replace(after, f"{after}      - fault_matrix\n"), encoding="utf-8"
    )


def hide_version(metadata: Path) -> None:
    """Replace the version, which each page would name as that of its plugin, even if only a later one has the plugin."""
    text = metadata.read_text(encoding="utf-8")
    metadata.write_text(re.sub(r"^version:.*", 'version: "*"', text, flags=re.MULTILINE), encoding="utf-8")


def write_sources(workspace: Workspace, sources: Path) -> None:
    """Write the sources of Sphinx: the plugins' pages, the guides and the front page."""
    sources.mkdir(mode=0o755)
    guides = workspace.collection / "docs" / "docsite" / "rst"
    write_error_matrix(guides)
    hide_version(workspace.collection / "galaxy.yml")
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
    shutil.copy(SITE / "flow.svg", sources)
    shutil.copytree(guides.parent / "images", sources / "images")
    front = (SITE / "index.rst").read_text(encoding="utf-8").replace(MODULES, "\n".join(modules(sources)))
    (sources / "index.rst").write_text(
        front + "".join(menu(sources, guides.parent / "extra-docs.yml")), encoding="utf-8"
    )
    for page in sources.glob("*.rst"):
        if is_internal(page.stem):
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace(":orphan:\n", ":orphan:\n:nosearch:\n", 1), encoding="utf-8")


def menu(sources: Path, sections_file: Path) -> Iterator[str]:
    """The lists of the menu, which the front page does not show: guides, plugins by kind, background, internal plugins."""
    guides = yaml.safe_load(sections_file.read_text(encoding="utf-8"))["sections"]
    *sections, background = [
        toctree(section["title"], (f"docsite/{page}" for page in section["toctree"])) for section in guides
    ]
    yield from sections
    pages = sorted(path.stem for path in sources.glob("*.rst"))
    internal = [*filter(is_internal, pages)]
    for kind, caption in KINDS.items():
        names = sorted(named(page) for page in pages if page.endswith(f"_{kind}") and page not in internal)
        yield toctree(
            caption, [*names, "environment variables <environment_variables>"] if kind == "inventory" else names
        )
    yield background
    yield toctree("Internal", map(named, internal))


def modules(sources: Path) -> Iterator[str]:
    """The list of modules on the front page: the name of each, and what it does, as its page says in its title."""
    for page in sorted(sources.glob("*_module.rst")):
        title = re.search(r"^clouddb\.control\.\w+ module -- (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        if title and not is_internal(page.stem):
            yield f"   - :doc:`{named(page.stem)}`: {title[1][0].lower()}{title[1][1:]}"


def is_internal(page: str) -> bool:
    """Whether only roles use the plugin of a page."""
    return any(fnmatch(page, pattern) for pattern in INTERNAL)


def named(page: str) -> str:
    """The page of a plugin with the plugin's name as its title."""
    return f"{page.rpartition('_')[0]} <{page}>"


def toctree(caption: str, entries: Iterable[str]) -> str:
    """A list of pages for the menu."""
    lines = [
        "",
        ".. toctree::",
        f"   :caption: {caption}",
        "   :hidden:",
        "",
        *(f"   {entry}" for entry in entries),
        "",
    ]
    return "\n".join(lines)


def write_inventory(path: Path) -> None:
    """Write an inventory for intersphinx, in its format version 2."""
    header = "# Sphinx inventory version 2\n# Project: Ansible\n# Version: \n# The remainder of this file is compressed using zlib.\n"
    labels = [f"{label} std:label -1 {address} {label}\n" for label, address in ANSIBLE_LABELS.items()]
    variables = [
        f"{name} std:envvar -1 reference_appendices/config.html#envvar-{name} -\n" for name in ANSIBLE_VARIABLES
    ]
    path.write_bytes(header.encode() + zlib.compress("".join(labels + variables).encode()))


def run(workspace: Workspace, program: str, *arguments: str) -> None:
    """Run a program in the workspace; exit if it fails."""
    with workspace.start(program, *arguments) as process:
        if process.wait():
            sys.exit(f"{program} failed.")


def main() -> None:
    """Build the site, and replace the previous build."""
    exit_on_signals()
    with temporary_workspace() as workspace:
        workspace.env["HOME"] = str(workspace.root)  # antsibull-docs writes a log there
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
        shutil.rmtree(TARGET, ignore_errors=True)
        shutil.copytree(built, TARGET, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))
    print(f"The site is in {TARGET / 'index.html'}")


if __name__ == "__main__":
    main()
