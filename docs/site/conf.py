# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Sphinx for build.py."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

SITE = Path(__file__).resolve().parent
CHECKOUT = SITE.parents[1]
sys.path.insert(0, str(SITE))

galaxy = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))
is_released = "-" not in galaxy["version"]

project = "clouddb.control"
author = "clouddb.control contributors"
copyright = author
version = release = galaxy["version"]

extensions = ["sphinx.ext.intersphinx", "sphinx_antsibull_ext", "examples_first", "options_by_use"]
antsibull_ext_color_scheme = "default-autodark"
default_role = "any"
highlight_language = "YAML+Jinja"
pygments_style = "ansible"

# Links to Ansible's documentation need no network: build.py writes an inventory of the labels in use.
intersphinx_mapping = {"ansible": ("https://docs.ansible.com/ansible/latest/", "ansible.inv")}

html_theme = "sphinx_ansible_theme"
html_theme_options = {
    "collapse_navigation": False,
    "navigation_depth": 2,
    "show_extranav": False,
    "show_rtd_ethical_ads": False,
}
html_context = {
    "nav_version": f"version {version}" if is_released else "development version",
    "is_released": is_released,
    "released_site": f"{galaxy['documentation']}stable/",
}
html_title = f"{project}, {html_context['nav_version']}"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
