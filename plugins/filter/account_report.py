# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of an account report."""

from __future__ import annotations

DOCUMENTATION = r"""
name: account_report
short_description: Statistics of an account's API keys, projects and operations
version_added: 1.0.0
description:
  - Turns what the info modules of this collection return into the facts of an account report, which can be written as JSON, and drawn as
    a page by P(clouddb.control.account_report_page#filter). The role C(clouddb.control.account_report) does both.
  - All ages and periods are measured from O(now) and by the service's timestamps. No clock is read.
  - A duration is the time from C(created_at) to C(updated_at), of operations that were carried out, that is of those whose status is
    C(finished), C(failed) or C(error). The 95th percentile is the nearest rank, so it is one of the durations.
  - Each operation has the label that the web console shows for its status. C(finished) and C(skipped) are V(OK), C(scheduling) is
    V(Scheduling), C(failed), C(error) and C(cancelled) are V(Error). Any other status is V(In progress), as it is for
    M(clouddb.control.operation_wait).
author:
  - clouddb.control contributors (@clouddb)
options:
  _input:
    description:
      - What the account has, as returned by the info modules.
    type: dict
    required: true
    suboptions:
      api_keys:
        description: RV(clouddb.control.api_key_info#module:api_keys).
        type: list
        elements: dict
        required: true
      projects:
        description: RV(clouddb.control.project_info#module:projects).
        type: list
        elements: dict
        required: true
      unavailable_project_ids:
        description: RV(clouddb.control.project_info#module:unavailable_project_ids).
        type: list
        elements: str
        default: []
      operations:
        description: RV(clouddb.control.operation_info#module:operations). Those older than O(days) are left out.
        type: list
        elements: dict
        required: true
  now:
    description:
      - The moment of the report, an ISO 8601 timestamp (UTC if it has no offset).
    type: str
    required: true
  days:
    description:
      - How many days back from O(now) the operations are reported.
    type: int
    default: 7
  stale_days:
    description:
      - A key is stale when it was last used so many days ago, or longer.
    type: int
    default: 90
  title:
    description:
      - Title of the report.
    type: str
    default: Account report
  previous:
    description:
      - Text of an earlier report's JSON. If the facts are still the same, the result has the earlier C(generated_at), so that the report
        does not change only because time has passed. A text that is no such JSON counts as none.
    type: str
    default: ""
seealso:
  - plugin: clouddb.control.account_report_page
    plugin_type: filter
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: List the projects
  clouddb.control.project_info:
  register: found

- name: List their operations of the last day
  clouddb.control.operation_info:
    created_after: 24h
  register: recent

- name: Show how long the actions took
  ansible.builtin.debug:
    msg: "{{ item.action }}: median {{ item.median_seconds }} s, 95 % took at most {{ item.p95_seconds }} s"
  loop: "{{ (account | clouddb.control.account_report(now=now(utc=true).isoformat(), days=1)).operations.by_action }}"
  loop_control:
    label: "{{ item.action }}"
  vars:
    account:
      api_keys: []
      projects: "{{ found.projects }}"
      operations: "{{ recent.operations }}"
"""

RETURN = r"""
_value:
  description: The facts.
  type: dict
  contains:
    format:
      description: Version of the shape of the facts.
      type: int
    title:
      description: O(title).
      type: str
    generated_at:
      description: O(now), or that of O(previous) if nothing else has changed. UTC.
      type: str
    since:
      description: Where the period of the operations begins. UTC.
      type: str
    days:
      description: O(days).
      type: int
    stale_days:
      description: O(stale_days).
      type: int
    fingerprint:
      description: Hash of all facts but C(generated_at) and C(since).
      type: str
    api_keys:
      description:
        - C(total), C(never_used), C(stale), C(duplicate_names) are numbers of keys.
        - C(list) has the keys by name, each with C(id), C(name), C(created_at), C(age_days), C(last_used_on) (the day), C(unused_days),
          C(last_used_from_addr), and C(never_used), C(stale), C(duplicate_name) as booleans.
      type: dict
    projects:
      description:
        - C(total) and C(locked) are numbers of projects, C(cpu_used_sec) is the sum of their compute seconds.
        - C(by_region), C(by_version) and C(by_platform) have the number of projects of each kind.
        - C(unavailable_ids) has the ids of those that the service could not list.
        - C(list) has the projects by name.
      type: dict
    operations:
      description:
        - C(total) is their number. C(by_label) and C(by_status) have the number of each kind.
        - C(by_action) has a dictionary for each action, the most frequent first, with C(action), C(total), C(by_label), C(timed) (the number of
          durations), C(median_seconds), C(p95_seconds) and C(longest_seconds).
        - C(slowest) has the ten that took longest, C(failed) all whose label is V(Error), C(list) all, newest first.
        - An operation has C(label) and C(duration_seconds), the C(project_name), and what the service sent.
      type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ..plugin_utils._report.facts import Scope, report_facts


def account_report(
    account: Any, now: str, days: int = 7, stale_days: int = 90, title: str = "Account report", previous: str = ""
) -> Any:
    """The facts of the account. What the service sent is data: it is never taken for a template."""
    if not isinstance(account, Mapping) or not {"api_keys", "projects", "operations"} <= set(account):
        raise AnsibleFilterError(
            "account_report: the input has to be a dictionary with api_keys, projects and operations."
        )
    if days < 1 or stale_days < 1:
        raise AnsibleFilterError("account_report: days and stale_days have to be 1 or more.")
    try:
        return wrap_var(report_facts(account, Scope(title, days, stale_days), now, previous))
    except (OverflowError, ValueError) as error:
        raise AnsibleFilterError(f"account_report: {error}") from error


class FilterModule:
    """Tells Ansible of the filter."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"account_report": account_report}
