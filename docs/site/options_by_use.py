# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sorts the options on the page of a plugin or role: required ones first, then its own, and those of the connection in a table of their own.

antsibull-docs sorts them by name, so that each page began with the same options of the connection. The search finds a plugin by its own options.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from examples_first import is_plugin_page, sections
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

FRAGMENTS = Path(__file__).resolve().parents[2] / "plugins" / "doc_fragments"


def options_of(fragment: str, *parts: str) -> set[str]:
    """The options that a documentation fragment describes."""
    documented = runpy.run_path(str(FRAGMENTS / f"{fragment}.py"))["ModuleDocFragment"]
    return {name for part in parts for name in yaml.safe_load(getattr(documented, part))["options"]}


CONNECTION = options_of("connection", "DOCUMENTATION") | options_of("organization", "DOCUMENTATION")
WAITING = options_of("wait", "DOCUMENTATION")
# Where every resource has them, nobody searches for them; and those that Ansible itself documents, for files and caches.
COMMON = WAITING | options_of("resource", "DOCUMENTATION", "STATE", "PROJECT", "BRANCH") | {"name"}
FILES = {"attributes", "group", "mode", "owner", "selevel", "serole", "setype", "seuser", "unsafe_writes"}
CACHES = {"cache", "cache_connection", "cache_plugin", "cache_prefix", "cache_timeout"}

# What everybody sets
FIRST = ("project", "branch", "name", "state")

# What else readers search for, by the page that answers, or by its section.
SEARCHED = {
    "api_key_module": ["create a key", "revoke"],
    "branch_module": ["sweep", "preview"],
    "branch_restore_module": ["reset", "restore", "undo", "point in time"],
    "compute_module": ["endpoint", "read replica", "resize", "restart", "scale", "suspend"],
    "connection_info_module": ["connection string", "database url", "env file", ".env", "dotenv", "uri"],
    "database_user_module": ["password", "role"],
    "projects_inventory": ["hosts", "dynamic inventory"],
    "sandbox_role": ["mock", "fake"],
    "docsite/key_rotation": ["rotate", "rotation"],
    "docsite/waiting": ["timeout", "deadline", "poll"],
    "docsite/password_rotation": ["password rotation", "rotate password"],
    "docsite/performance#what-it-costs": ["cost", "money", "price"],
    "docsite/testing_playbooks": ["molecule"],
    "docsite/troubleshooting": [
        "400",
        "401",
        "403",
        "404",
        "409",
        "412",
        "422",
        "423",
        "429",
        "500",
        "503",
        "524",
        "error",
    ],
}


class OptionsByUse(SphinxTransform):
    """The transform of each page that antsibull-docs makes of a plugin or role."""

    default_priority = 701

    def apply(self, **_options: Any) -> None:
        page = self.env.docname
        parameters = next(sections(self.document, "Parameters"), None)
        if is_plugin_page(page) and parameters is not None:
            own = sort_options(parameters)
            parameters.insert(1, entries(sorted({*own} - COMMON) if page.endswith("_module") else []))
        for place, words in SEARCHED.items():
            if place.partition("#")[0] == page:
                next(self.document.findall(nodes.section)).insert(1, entries(words, place.partition("#")[2]))


def sort_options(section: nodes.section) -> list[str]:
    """Sort the rows of the table, and move those of the connection to a second one. Returns the names of the plugin's own options."""
    table = next(section.findall(nodes.table))
    body = next(table.findall(nodes.tbody))
    rows = [(name_of(row), row) for row in body.children]
    required = {name for name, row in rows if list(row.findall(is_mark_of_required))}
    # Other pages have an owner of their own.
    ansibles = CACHES | (FILES if "selevel" in dict(rows) else set())

    def place(option: tuple[str, nodes.row]) -> tuple[bool, bool, bool, int]:
        name = option[0].partition("/")[0]  # that of a dictionary for the options in it
        usual = FIRST.index(name) if name in FIRST else len(FIRST)
        return name not in required, name in WAITING or name == "wait", name in ansibles, usual

    own = sorted((option for option in rows if option[0] not in CONNECTION), key=place)
    connection = [row for name, row in rows if name in CONNECTION]
    body.children = []
    body += [row for _name, row in own]
    if connection and own:
        second = table.deepcopy()
        next(second.findall(nodes.tbody)).children = []
        next(second.findall(nodes.tbody)).extend(connection)
        guide = nodes.reference("", "Authentication with a real account", refuri="docsite/real_account.html")
        text = nodes.paragraph(
            "",
            "",
            nodes.Text("These options are the same on all pages. "),
            guide,
            nodes.Text(" shows where to set them."),
        )
        section += nodes.section("", nodes.title("", "Connection"), text, second, ids=["connection"])
    elif connection:
        body += connection
    return [name for name, _row in own if "/" not in name and name not in ansibles]


def name_of(row: nodes.Node) -> str:
    """The name of the option in a row, without the entry point of a role; with that of its dictionary if it is in one."""
    anchor = re.search(r'id="parameter-(?:\w+--)?([^"]*)"', row.astext())
    assert anchor, row
    return anchor[1]


def is_mark_of_required(node: nodes.Node) -> bool:
    """Whether a node is the word that marks a required option."""
    return isinstance(node, nodes.inline) and "ansible-option-required" in node["classes"]


def entries(words: list[str], target: str = "") -> addnodes.index:
    """Words by which the search finds a page first, or a section of it."""
    return addnodes.index(entries=[("single", word, target, "main", None) for word in words])


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the transform."""
    app.add_transform(OptionsByUse)
    return {"parallel_read_safe": True}
