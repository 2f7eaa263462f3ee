# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter plugin that converts the facts of an account report to metrics for Prometheus."""

from __future__ import annotations

DOCUMENTATION = r"""
name: account_report_metrics
short_description: Metrics of an account report for Prometheus
version_added: 1.1.0
description:
  - Converts the facts of P(clouddb.control.account_report#filter) to metrics in the OpenMetrics text format.
  - The textfile collector of node_exporter can read the text, too, because it contains only gauges and a histogram without timestamps.
  - The metrics contain numbers, times, regions, actions and statuses, but no names or addresses.
  - The guide to account reports describes all metrics.
requirements:
  - Python library prometheus_client on the controller
author:
  - clouddb.control contributors (@clouddb)
options:
  _input:
    description:
      - Facts of P(clouddb.control.account_report#filter).
    type: dict
    required: true
  account:
    description:
      - Value of the label C(account) of all metrics. Files that one node_exporter reads need different ones.
    type: str
    required: true
  now:
    description:
      - Time of the report, as an ISO 8601 timestamp, or as a date or datetime of YAML. Without an offset it is in UTC.
      - It can be later than C(generated_at) of the facts, which does not change as long as the facts are the same.
    type: raw
    required: true
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

- name: Show the number of API keys
  ansible.builtin.debug:
    msg: "{{ metrics | regex_findall('^clouddb_api_keys.*', multiline=true) }}"
  vars:
    facts: "{{ account_report_facts }}"
    metrics: "{{ facts | clouddb.control.account_report_metrics(account='production', now=facts.generated_at) }}"
"""

RETURN = r"""
_value:
  description: Metrics in the OpenMetrics text format.
  type: str
"""

import sys
from collections.abc import Callable
from datetime import date
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._timestamps import parse_timestamp
from ..module_utils._untrusted import displayable
from ..plugin_utils._report.facts import FORMAT, INVALID_INPUT
from ..plugin_utils._report.metrics import metrics_text


def account_report_metrics(facts: Any, account: str, now: str | date) -> Any:
    """The metrics, marked as unsafe so that values of the service are never rendered as templates."""
    try:
        if facts["format"] != FORMAT:
            raise AnsibleFilterError(
                f"account_report_metrics: the facts have format {displayable(facts['format'], 50)}, not {FORMAT}. Create the report again."
            )
        return wrap_var(metrics_text(facts, account, parse_timestamp(str(now))))
    except ImportError as error:
        raise AnsibleFilterError(
            "account_report_metrics: the Python library prometheus_client cannot be imported on the controller. "
            f"Install it with '{sys.executable} -m pip install prometheus_client', or do not set account_report_metrics_dest."
        ) from error
    except INVALID_INPUT as error:
        raise AnsibleFilterError(
            f"account_report_metrics: the input must be the result of the filter account_report: {displayable(error)}"
        ) from error


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"account_report_metrics": account_report_metrics}
