# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the examples on the page of a plugin or role below its synopsis; antsibull-docs has them near the end, and none for roles.

The example of a role is the first one in its README.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

ROLES = Path(__file__).resolve().parents[2] / "roles"
OTHER_PAGES = ("index", "environment_variables")


class ExamplesFirst(SphinxTransform):
    """The transform of each page that antsibull-docs makes of a plugin or role."""

    default_priority = 700  # before that of docutils which writes the list of contents

    def apply(self, **_options: Any) -> None:
        page = self.env.docname
        if is_plugin_page(page):
            put_examples_first(self.document, page)


def is_plugin_page(page: str) -> bool:
    """Whether antsibull-docs makes the page of a plugin or role."""
    return "/" not in page and page not in OTHER_PAGES


def put_examples_first(document: nodes.document, page: str) -> None:
    """Put the examples, and then the notes on the installation, below the synopsis. Raises ExtensionError if there are none."""
    examples = (
        example_of_role(page[: -len("_role")]) if page.endswith("_role") else next(sections(document, "Examples"), None)
    )
    synopsis = next(sections(document, "Synopsis"), None)
    if examples is None or synopsis is None:
        raise ExtensionError(f"The page {page} has no synopsis or no example.")
    contents = next(document.findall(nodes.topic))
    notes = [note for part in (contents.parent, synopsis) for note in part.children if isinstance(note, nodes.note)]
    for node in (examples, *notes):
        if node.parent:
            node.parent.remove(node)
    examples += notes
    synopsis.parent.insert(synopsis.parent.index(synopsis) + 1, examples)


def sections(document: nodes.document, title: str) -> Iterator[nodes.section]:
    """The sections of a page with a title."""
    return (section for section in document.findall(nodes.section) if section[0].astext() == title)


def example_of_role(name: str) -> nodes.section | None:
    """A section with the first example in the README of a role."""
    found = re.search(
        r"^```yaml\n(.*?)^```$", (ROLES / name / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    if not found:
        return None
    title = nodes.title("", "Examples")
    return nodes.section("", title, nodes.literal_block(found[1], found[1], language="YAML+Jinja"), ids=["examples"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the transform."""
    app.add_transform(ExamplesFirst)
    return {"parallel_read_safe": True}
