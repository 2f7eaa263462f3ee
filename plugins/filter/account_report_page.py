# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter plugin that prepares the facts of an account report for an HTML template."""

from __future__ import annotations

DOCUMENTATION = r"""
name: account_report_page
short_description: Content of an account report's HTML page
version_added: 1.0.0
description:
  - Converts the facts of P(clouddb.control.account_report#filter) to the content of an HTML page. Values are formatted as text, lists are
    sorted, and timelines are SVG coordinates, so that a template only has to lay them out.
  - Long tables are folded. The longest are truncated, without their least important rows.
  - The result is not escaped. The template must escape every value.
author:
  - clouddb.control contributors (@clouddb)
options:
  _input:
    description:
      - Facts of P(clouddb.control.account_report#filter).
    type: dict
    required: true
  most_timelines:
    description:
      - Maximum number of projects with a timeline. Projects with the most errors come first, then those with the most operations. The others
        are rows of a table.
    type: int
    default: 20
  most_rows:
    description:
      - Maximum number of rows in a table.
    type: int
    default: 1000
seealso:
  - plugin: clouddb.control.account_report
    plugin_type: filter
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a report on the account
  ansible.builtin.include_role:
    name: clouddb.control.account_report
  vars:
    account_report_dest: /srv/reports/account.html

- name: Create a page with a custom template
  ansible.builtin.template:
    src: my-report.html.j2
    dest: /srv/reports/mine.html
    mode: "0644"
  vars:
    page: "{{ account_report_facts | clouddb.control.account_report_page(most_timelines=5) }}"
"""

RETURN = r"""
_value:
  description: Content of the page, as used by the templates of the role C(clouddb.control.account_report).
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._errors import InvalidOption
from ..module_utils._options import integer_of
from ..module_utils._untrusted import displayable
from ..plugin_utils._report.facts import FORMAT, INVALID_INPUT
from ..plugin_utils._report.page import PageLimits, report_page


def account_report_page(facts: Any, most_timelines: int = 20, most_rows: int = 1000) -> Any:
    """The content of the page, marked as unsafe so that values of the service are never rendered as templates."""
    try:
        limits = PageLimits(integer_of("most_timelines", most_timelines, 0), integer_of("most_rows", most_rows, 0))
    except InvalidOption as error:
        raise AnsibleFilterError(f"account_report_page: {error}") from error
    try:
        if facts["format"] != FORMAT:
            raise AnsibleFilterError(
                f"account_report_page: the facts have format {displayable(facts['format'], 50)}, not {FORMAT}. Create the report again."
            )
        return wrap_var(report_page(facts, limits))
    except INVALID_INPUT as error:
        raise AnsibleFilterError(
            f"account_report_page: the input must be the result of the filter account_report: {displayable(error)}"
        ) from error


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"account_report_page": account_report_page}
