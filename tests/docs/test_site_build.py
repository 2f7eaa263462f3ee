# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What docs/site adds to Sphinx and its theme, on sites of few pages. tests/browser opens the complete site."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from workspace import CHECKOUT

MODULE = """
clouddb.control.demo module
+++++++++++++++++++++++++++

.. note:: To install it, use a command.

.. contents::
   :local:
   :depth: 1

Synopsis
--------
- Shows how it works.

.. _requirements:

Requirements
------------
- requests

Parameters
----------
See :ref:`Requirements <requirements>`.

.. role:: ansible-option-required

.. list-table::
  :header-rows: 1
  :class: ansible-option-table

  * - Parameter
    - Comments
"""
OPTION = """
  * - .. raw:: html

        <div id="parameter-{name}"></div>

      {mark}
    - Text
"""
OPTIONS = "".join(
    OPTION.format(name=name, mark=":ansible-option-required:`required`" if name == "target" else "Optional")
    for name in ("api_key", "name", "org_id", "owner", "parts", "parts/one", "state", "target", "timeout")
)
EXAMPLES = """
Examples
--------
.. code-block:: yaml+jinja

    - clouddb.control.demo:

.. _return_values:

Return Values
-------------
None.
"""
GUIDE = "Guide\n=====\n"
METADATA = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))


def build(folder: Path, version: str, **pages: str) -> str:
    """Build a site with these pages for a version of the collection; the errors of Sphinx."""
    shutil.copytree(CHECKOUT / "docs" / "site", folder / "docs" / "site")
    (folder / "galaxy.yml").write_text(yaml.safe_dump({**METADATA, "version": version}), encoding="utf-8")
    (folder / "sources").mkdir()
    for name, content in {"index": GUIDE, **pages}.items():
        (folder / "sources" / f"{name}.rst").write_text(f":orphan:\n\n{content}", encoding="utf-8")
    shutil.copytree(CHECKOUT / "plugins" / "doc_fragments", folder / "plugins" / "doc_fragments")
    options = ["-W", "-q", "-b", "html", "-c", "docs/site", "-D", "extensions=examples_first,options_by_use"]
    program = [sys.executable, "-m", "sphinx", *options]
    done = subprocess.run([*program, "sources", "built"], cwd=folder, capture_output=True, text=True, check=False)
    assert bool(done.stderr) == bool(done.returncode)
    return done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert build(folder, "1.3.0-dev0", demo_module=MODULE + OPTIONS + EXAMPLES) == ""
    return folder / "built"


def body_of(page: Path) -> str:
    """What a page shows beside the menu."""
    return page.read_text(encoding="utf-8").partition('role="main"')[2]


def headings(body: str) -> list[str]:
    return re.findall(r'role="doc-backlink">([^<]*)<', body)


def contents(body: str) -> list[str]:
    return re.findall(r'<a class="reference internal" href="#([^"]*)" id=', body)


def test_examples_follow_the_synopsis(site: Path) -> None:
    body = body_of(site / "demo_module.html")
    assert headings(body) == ["Synopsis", "Examples", "Requirements", "Parameters", "Return Values"]
    assert contents(body) == ["synopsis", "examples", "requirements", "parameters", "return-values"]
    order = [body.index(text) for text in ("Shows how", ">clouddb.control.demo<", "To install it", "<p>requests")]
    assert order == sorted(order)


def test_options_of_the_connection_follow_those_of_the_plugin(site: Path) -> None:
    shown = re.findall(r'id="parameter-([^"]*)"', body_of(site / "demo_module.html"))
    own = ["target", "name", "state", "owner", "parts", "parts/one", "timeout"]
    assert shown == [*own, "api_key", "org_id"]


def test_search_finds_a_module_by_its_own_options(site: Path) -> None:
    index = json.loads((site / "searchindex.js").read_text(encoding="utf-8")[len("Search.setIndex(") : -1])
    page = index["docnames"].index("demo_module")
    found = {word for word, places in index["indexentries"].items() if [page, "", True] in places}
    assert found == {"owner", "parts", "target"}


def test_page_without_an_example_is_an_error(tmp_path: Path) -> None:
    assert "The page demo_module has no synopsis or no example." in build(
        tmp_path, "1.2.3", demo_module=MODULE + OPTIONS
    )


def test_pages_say_whether_their_version_is_released(site: Path, tmp_path: Path) -> None:
    link = f'<a href="{METADATA["documentation"]}stable/">'
    assert build(tmp_path, "1.2.3") == ""
    built = tmp_path / "built"
    for page, shown, has_banner in (site, "development version", True), (built, "version 1.2.3", False):
        html = (page / "index.html").read_text(encoding="utf-8")
        assert f"<title>Guide &mdash; clouddb.control, {shown}</title>" in html
        assert re.search(rf'<div class="version">\s*{shown}\s*</div>', html)
        assert ("version 1.3.0 is not released" in html, link in html) == (has_banner, has_banner)
