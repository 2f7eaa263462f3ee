# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of an account report, laid out but not yet written as HTML."""

from __future__ import annotations

DOCUMENTATION = r"""
name: account_report_page
short_description: What the page of an account report shows
version_added: 1.0.0
description:
  - Turns the facts of P(clouddb.control.account_report#filter) into what a page shows of them, in its order and with all values as texts, so
    that a template has only to lay it out. Timelines come as coordinates for SVG.
  - What would make the page too long is folded away or left out, the least pressing first.
  - Nothing in the result is escaped. A template has to do that with every value.
author:
  - clouddb.control contributors (@clouddb)
options:
  _input:
    description:
      - The facts.
    type: dict
    required: true
  most_timelines:
    description:
      - How many projects have a timeline, those first that have the most errors, then the most operations. The others share a table.
    type: int
    default: 20
  most_rows:
    description:
      - How many rows a table has at most.
    type: int
    default: 1000
seealso:
  - plugin: clouddb.control.account_report
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the JSON of an account report
  ansible.builtin.slurp:
    src: /srv/reports/account.json
  register: report

- name: Write a page of it with a template of one's own
  ansible.builtin.template:
    src: my-report.html.j2
    dest: /srv/reports/mine.html
    mode: "0644"
  vars:
    page: "{{ report.content | b64decode | from_json | clouddb.control.account_report_page(most_timelines=5) }}"
"""

RETURN = r"""
_value:
  description: The page. The templates of the role C(clouddb.control.account_report) show what is in it.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ..plugin_utils._report.facts import FORMAT
from ..plugin_utils._report.page import Limits, report_page


def account_report_page(facts: Any, most_timelines: int = 20, most_rows: int = 1000) -> Any:
    """The page for the facts. What the service sent is data: it is never taken for a template."""
    try:
        if facts["format"] != FORMAT:
            raise AnsibleFilterError(f"account_report_page: the facts are of format {facts['format']}, not {FORMAT}.")
        return wrap_var(report_page(facts, Limits(max(0, most_timelines), max(0, most_rows))))
    except (KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"account_report_page: the input is not what the filter account_report returns: {error}"
        ) from error


class FilterModule:
    """Tells Ansible of the filter."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"account_report_page": account_report_page}
