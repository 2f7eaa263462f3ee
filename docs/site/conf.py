# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of Sphinx for build.py."""

from __future__ import annotations

project = "clouddb.control"
author = "clouddb.control contributors"
copyright = author

extensions = ["sphinx.ext.intersphinx", "sphinx_antsibull_ext"]
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
html_title = "clouddb.control"
templates_path = ["templates"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
