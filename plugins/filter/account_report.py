# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter plugin that calculates an account report for the role account_report. Keeps P3 and P8."""

from __future__ import annotations

DOCUMENTATION = r"""
name: account_report
short_description: Facts, page and metrics of an account report (internal to the role account_report)
version_added: 1.0.0
description:
  - Calculates an account report from the results of the info modules of this collection. Only the role C(clouddb.control.account_report) uses
    this filter, so its options can change in any release. RV(_value.facts) are what the role writes as JSON and sets as C(account_report_facts).
  - All ages and periods are relative to O(now) and use the timestamps of the service. The filter does not read a clock.
  - The duration of an operation is the time from C(created_at) to C(updated_at). Only operations with the status C(finished), C(failed) or
    C(error) have a duration. The 95th percentile is calculated with the nearest-rank method.
  - The label of an operation is the one that the web console shows. It is V(OK) or V(Error) for the statuses that count as succeeded or failed
    in M(clouddb.control.operation_wait), V(Scheduling) for C(scheduling), and V(In progress) for any other status.
author: clouddb.control contributors (@clouddb)
options:
  _input:
    description:
      - Dictionary with C(api_keys), C(projects), C(unavailable_project_ids) and C(operations), as the info modules return them, and with
        C(unread_project_ids), the ids of projects whose operations could not be fetched.
      - Operations that were created more than O(days) before O(now) are ignored unless they are unfinished, or have failed since then. Those
        that were created more than an hour after O(now) are ignored, too. The hour allows for a difference between the clocks.
    type: dict
    required: true
  now:
    description: Time of the report, as an ISO 8601 timestamp, or as a date or datetime of YAML. Without an offset it is in UTC.
    type: raw
    required: true
  days:
    description: Number of days before O(now) whose operations are reported.
    type: int
    default: 7
  stale_days:
    description: Number of days without use after which a key is idle, which C(stale) of the key shows.
    type: int
    default: 90
  title:
    description: Title of the report.
    type: str
    default: Account report
  previous:
    description: JSON of an earlier report. If the facts are the same, the result keeps the earlier C(generated_at), so that the report does not
      change only because time has passed. Anything other than the JSON of a report is ignored.
    type: str
    default: ""
  most_timelines:
    description: Maximum number of projects with a timeline on the page.
    type: int
    default: 20
  most_rows:
    description: Maximum number of rows in a table on the page.
    type: int
    default: 1000
  project_url:
    description: Address of a project in the web console, with C({project_id}) in place of the id. If empty, the page has no links to it.
    type: str
    default: ""
    version_added: 2.0.0
  account:
    description: Value of the label C(account) of all metrics.
    type: str
    default: ""
  interval:
    description: Time between two reports, in seconds or with a unit. It is a metric.
    type: raw
    default: 1h
    version_added: 2.0.0
  policy:
    description: Result of M(clouddb.control.api_key_policy), whose findings are metrics.
    type: dict
    default: {}
    version_added: 2.0.0
  limits:
    description: Limits of the usage of each project, by field. The fields are C(active_time_seconds), C(compute_time_seconds),
      C(written_data_bytes), C(data_transfer_bytes) and C(synthetic_storage_size).
    type: dict
    default: {}
    version_added: 3.0.0
  clock_difference:
    description: Seconds by which the clock of the controller is ahead of the service's. More than five minutes are a warning.
    type: float
    default: 0
    version_added: 3.0.0
"""

EXAMPLES = r"""
# The example takes base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a report on the account
  ansible.builtin.include_role:
    name: clouddb.control.account_report
  vars:
    account_report_dest: /srv/reports/account.html

- name: Show the duration of each action
  ansible.builtin.debug:
    msg: "{{ item.action }}: median {{ item.median_seconds }} s, 95 % took at most {{ item.p95_seconds }} s"
  loop: "{{ account_report_facts.operations.by_action }}"
  loop_control:
    label: "{{ item.total }} operations"
"""

RETURN = r"""
_value:
  description: The report.
  type: dict
  contains:
    summary:
      description: The numbers of keys, projects and operations, and what needs attention.
      type: list
      elements: str
    page:
      description: The page as HTML, which contains the values of the service only as escaped text.
      type: str
    metrics:
      description: Metrics in the OpenMetrics text format.
      type: str
    facts:
      description:
        - Facts of the report, with O(title), O(days) and O(stale_days).
        - C(generated_at) is the time of the report in UTC, which is O(now), or the time of O(previous) if nothing else has changed. C(since) is
          the start of the reported period. C(fingerprint) is a hash of all other facts.
        - C(format) is the version of the structure of the facts.
      type: dict
      contains:
        api_keys:
          description:
            - C(total), C(never_used), C(stale) and C(duplicate_names) are numbers of keys.
            - C(list) contains the keys sorted by name, each with C(id), C(name), C(created_at), C(age_days), C(last_used_on) (a date),
              C(unused_days), C(last_used_from_addr), and the booleans C(never_used), C(stale) and C(duplicate_name).
          type: dict
        projects:
          description:
            - C(total) and C(locked) are numbers of projects. C(cpu_used_sec) is the sum of their compute seconds.
            - C(by_region), C(by_version) and C(by_platform) map each value to its number of projects.
            - C(unavailable_ids) lists the ids of projects that the service could not list.
            - C(unreadable_ids) lists the ids of projects in C(list) whose operations could not be fetched.
            - C(list) contains the projects sorted by name, each with C(usage) and C(quota), which map fields to numbers, as far as the list of
              projects shows them.
            - C(limits) are those of O(limits). C(over_limits) contains a dictionary with C(id), C(name), C(field), C(used) and C(limit) for
              each that a project exceeds.
          type: dict
        operations:
          description:
            - C(total) is the number of operations. C(by_label) and C(by_status) map each value to its number of operations.
            - C(by_action) contains a dictionary for each action, the most frequent first, with C(action), C(total), C(by_label), C(timed) (the
              number of operations with a duration), C(median_seconds), C(p95_seconds) and C(longest_seconds).
            - C(long_unfinished) contains the operations that were created more than an hour ago and are unfinished.
            - C(list) contains all operations, newest first, C(failed) those with the label V(Error), and C(slowest) the ten with the longest
              duration.
            - Each operation has C(label), C(duration_seconds), C(project_name), and the fields that M(clouddb.control.operation_info) returns.
              C(project_name) is null if the project has no name, or is not in O(_input).
          type: dict
"""

from collections.abc import Callable, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any

from ansible.utils.display import Display

from ..module_utils._errors import InvalidOption
from ..module_utils._options import integer
from ..module_utils._timestamps import duration, parse_timestamp
from ..module_utils._untrusted import displayable
from ..plugin_utils._report.facts import INVALID_INPUT, report_facts
from ..plugin_utils._report.metrics import metrics_text
from ..plugin_utils._report.page import attention, report_page, summary
from ..plugin_utils._report.text import duration_text
from ..plugin_utils._report.usage import checked_limits
from ..plugin_utils._versions import FilterFailed, inert

MAX_CLOCK_DIFFERENCE_SECONDS = 300
# A hundred years. Time itself has less than a million days.
MOST_DAYS = 36525


def account_report(
    source: Any,
    now: str | date,
    days: int = 7,
    stale_days: int = 90,
    title: str = "Account report",
    previous: str = "",
    most_timelines: int = 20,
    most_rows: int = 1000,
    project_url: str = "",
    account: str = "",
    interval: str | int = "1h",
    policy: Mapping[str, Any] = MappingProxyType({}),
    limits: Mapping[str, Any] = MappingProxyType({}),
    clock_difference: float = 0,
) -> Any:
    """The report, marked as unsafe so that values of the service are never rendered as templates."""
    try:
        for option, number in {"days": days, "stale_days": stale_days}.items():
            integer({option: number}, option, 1, MOST_DAYS)
        for option, number in {"most_timelines": most_timelines, "most_rows": most_rows}.items():
            integer({option: number}, option, 0)
        seconds = duration({"interval": interval}, "interval", zero=False)
        facts = report_facts(source, str(title), days, stale_days, str(now), previous, checked_limits(limits))
        metrics = metrics_text(facts, str(account), seconds, policy, parse_timestamp(str(now)))
        page = report_page(facts, most_timelines, most_rows, str(project_url))
        lines = [summary(facts), *(text for _section, text in attention(facts))]
        _warn_of_clock(clock_difference)
        return inert({"facts": facts, "summary": lines, "page": page, "metrics": metrics})
    except (InvalidOption, *INVALID_INPUT) as error:
        raise FilterFailed(f"account_report: {displayable(error)}") from error


def _warn_of_clock(difference: float) -> None:
    if abs(difference) > MAX_CLOCK_DIFFERENCE_SECONDS:
        Display().warning(
            f"The clock of the controller is {duration_text(abs(difference))} {'ahead of' if difference > 0 else 'behind'} the service's. "
            "The report uses the service's. Synchronize the clock of the controller."
        )


class FilterModule:
    """The filter, by its name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"account_report": account_report}
