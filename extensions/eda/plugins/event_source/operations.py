# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event source for ansible-rulebook: changes of operations as events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
---
module: operations
short_description: Changes of operations as events
version_added: 1.0.0
description:
  - Event source of ansible-rulebook. It polls the operations of all projects of the account, or of selected ones, and emits an event for each
    change of an operation's status.
  - An event has C(clouddb.operation), with all fields that the service sends, C(clouddb.previous_status), which is null for a new operation,
    C(clouddb.project), the project as the service lists it, and C(clouddb.seconds), the time from the operation's creation to its latest update.
    Secrets in them are masked with V(********).
  - Texts in an event contain no templates. A space follows every C({) and C($), and control characters are replaced by escapes such as C(\n).
  - When a status changes several times between two polls, one event with the latest status is emitted.
  - The first poll emits no events for existing operations, unless O(backfill) is set. It follows the unfinished ones of the last day.
  - During an outage of the service, the event source keeps polling. It fails when an argument is invalid, or the service refuses the API key three
    times within a minute, with pauses of ten seconds.
author:
  - clouddb.control contributors (@clouddb)
options:
  base_url:
    description:
      - Base address of the control API with its version segment, for example V(https://control.example.com/api/v2).
      - If not set, the environment variable E(CLOUDDB_BASE_URL) is used.
    type: str
    required: true
  api_key:
    description:
      - API key of the account, sent as the bearer token.
      - If not set, the environment variable E(CLOUDDB_API_KEY) is used.
    type: str
    required: true
  validate_certs:
    description: Whether to validate the service's certificate.
    type: bool
    default: true
  ca_path:
    description: File with the certificates of the trusted authorities, or directory with one in each file, prepared with C(openssl rehash).
    type: path
  allow_http:
    description: Allow plain C(http) to other hosts, which exposes the key to every network in between.
    type: bool
    default: false
  api_timeout:
    description: Maximum duration of one request in seconds, from the name lookup to the last byte of the response.
    type: float
    default: 30
  project_ids:
    description:
      - Ids of the projects to follow. If not set, all projects that the key can access are followed, including those created later.
      - The projects are fetched by their ids, without a list of projects, so that a key that is limited to a project is sufficient.
      - An empty list is an error.
    type: list
    elements: str
  org_id:
    description:
      - Id of the organization whose projects are followed. Some accounts require it.
      - If not set, the environment variable E(CLOUDDB_ORG_ID) is used.
    type: str
    version_added: 2.0.0
  query:
    description:
      - Additional query parameters for the list of projects that the service supports, such as C(search). Projects that are not in this list are not
        followed. Ignored with O(project_ids).
      - Values are strings, numbers, or lists of them.
    type: dict
    version_added: 2.0.0
  actions:
    description:
      - Actions, such as V(create_branch). Only operations with one of them cause events. If not set, all do. An empty list is an error.
      - A misspelled action is an error. A warning in the log names other actions that are unknown to this collection.
    type: list
    elements: str
  statuses:
    description:
      - Statuses, such as V(failed). Only changes to one of them cause events. If not set, all do. An empty list is an error.
      - V(unsuccessful) stands for V(failed), V(error) and V(cancelled).
      - A misspelled status is an error. A warning in the log names other statuses that are unknown to this collection.
    type: list
    elements: str
  interval:
    description:
      - Interval between polls of a project during the five minutes after a change, in seconds or such as V(5s). With thousands of projects, up to
        twice as long.
    type: raw
    default: 5
  max_interval:
    description:
      - Interval between polls of any other project, in seconds or such as V(1m). Longer if O(requests_per_minute) does not allow it, as in an
        account with more than about 300 projects.
      - It is also the maximum interval between requests during an outage. A value below O(interval) has no effect.
    type: raw
    default: 30
  backfill:
    description:
      - Age in seconds, or such as V(30m), V(1h) or V(7d). At its first start, the event source also emits events for existing operations that are
        not older.
      - Ignored for projects whose state is in O(state_file).
    type: raw
    default: 0
  state_file:
    description:
      - Path of a file that stores which changes were reported, so that a restart neither misses nor repeats one. Each source needs a file of
        its own, in an existing directory. A file that another source is using, or that belongs to another O(base_url) or to other O(project_ids),
        O(actions) or O(statuses), is an error.
      - The file holds the ids and names of projects, and the ids and statuses of operations, but no key.
      - After a crash, events since the last saved state are emitted again, with the same C(meta.uuid).
      - A file that can't be read or written at the start is an error. Later on, saving is retried until it succeeds.
    type: path
  requests_per_minute:
    description: Maximum number of requests per minute; they are spaced evenly. The account's limit is 700, for all its clients together.
    type: int
    default: 600
  page_size:
    description: Number of projects to request per page. If not set, the largest that the service takes.
    type: int
requirements:
  - requests
"""

EXAMPLES = r"""
# All changes, with CLOUDDB_BASE_URL and CLOUDDB_API_KEY in the environment.
- clouddb.control.operations:

# Failures in selected projects, even those during a restart; base_url and api_key are variables of the rulebook.
- name: failures
  clouddb.control.operations:
    base_url: "{{ base_url }}"
    api_key: "{{ api_key }}"
    project_ids: [wispy-lake-12345678]
    statuses: unsuccessful
    state_file: /var/lib/clouddb/failures.json
    backfill: 1h
"""

# ansible-rulebook runs this file by its path, without Ansible's importer of collections, so the parent
# directory of ansible_collections has to be added to Python's search path.
sys.path += {
    str(path.parent) for path in Path(__file__).absolute().parents if path.name == "ansible_collections"
} - set(sys.path)

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.session import REQUESTS_IMPORT_ERROR
from ansible_collections.clouddb.control.plugins.plugin_utils._events.emitter import Queue
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import Follower
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import source_options


async def main(queue: Queue, args: dict[str, Any]) -> None:
    """Put events into the queue until cancelled. Raises ClouddbError when it can't go on."""
    if REQUESTS_IMPORT_ERROR:
        problem = f"The Python package requests is missing. Install it for {sys.executable}"
        raise ClouddbError("missing_library", f"{problem}, which runs ansible-rulebook.")
    await Follower(source_options(args), queue).run()
