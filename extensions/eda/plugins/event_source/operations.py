# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event source for ansible-rulebook: changes of operations as events."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: operations
short_description: Changes of operations as events
version_added: 1.0.0
description:
  - An event source of ansible-rulebook. It polls the operations of all projects of the account, or of chosen ones, and makes one event of each
    change of an operation's status.
  - An event holds C(clouddb.operation), with all fields that the service sends, C(clouddb.previous_status), which is null for an operation
    that is new, C(clouddb.project), the project as the service lists it, and C(clouddb.seconds), the time from the operation's creation to its
    latest update. C(meta.uuid) is the same when an event is told again after a crash.
  - Of several changes between two looks at a project only the latest status is told.
  - The first look tells nothing of what was before, unless O(backfill) says so. Operations that are unfinished by then and were created within a
    day are followed from there.
  - A project without changes is looked at less and less often, down to every O(max_interval) seconds; a change brings it back to O(interval).
  - It outlasts outages of any length. It ends, with an error, at an argument that is wrong, and when the service refuses the key.
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
    description:
      - Whether the service's certificate is checked.
    type: bool
    default: true
  ca_path:
    description:
      - File or folder with the certificates of the authorities to trust.
    type: str
  allow_http:
    description:
      - Allows plain C(http) to other machines, which shows the key to every network on the way.
    type: bool
    default: false
  api_timeout:
    description:
      - Seconds that one request may take to connect, and then for its whole response.
    type: float
    default: 30
  project_ids:
    description:
      - Projects to follow. If not set, all projects that the key reaches, also ones created later.
    type: list
    elements: str
    default: []
  actions:
    description:
      - Only operations with one of these actions, such as V(create_branch). If not set, all.
    type: list
    elements: str
    default: []
  statuses:
    description:
      - Only changes to one of these statuses, such as V(failed). If not set, all.
    type: list
    elements: str
    default: []
  interval:
    description:
      - Seconds from one look at a project to the next after something has changed.
    type: float
    default: 5
  max_interval:
    description:
      - Seconds from one look at a project to the next when nothing has changed for long. It is also the longest pause during an outage.
      - If not set, it is 30, or O(interval) where that is more.
    type: float
  backfill:
    description:
      - An age such as V(30m), V(1h) or V(7d). Operations that are no older than that when the source starts for the first time are told, too.
      - Means nothing once O(state_file) holds what is known.
    type: str
  state_file:
    description:
      - File to remember in what has been told, so that a restart neither loses nor repeats a change. Each source needs a file of its own.
      - It is replaced as a whole, and holds the ids, actions and statuses of operations, but no key. Its folder must exist.
      - After a crash, events of the last seconds can come a second time, with the same C(meta.uuid).
    type: str
  requests_per_minute:
    description:
      - Requests are spaced so that there are no more than these. The account's limit is 700 for all its clients together.
    type: int
    default: 600
  page_size:
    description:
      - Number of projects to ask for with each request. If not set, the service decides.
    type: int
  feedback:
    description:
      - Has ansible-rulebook confirm each event once its rules have taken it in, and counts it as told only then.
        ansible-rulebook offers that only where it has a persistence of its own.
    type: bool
    default: false
requirements:
  - requests
"""

EXAMPLES = r"""
# All changes, with CLOUDDB_BASE_URL and CLOUDDB_API_KEY in the environment.
- clouddb.control.operations:

# Failures of chosen projects, with a memory; base_url and api_key are variables of the rulebook.
- name: failures
  clouddb.control.operations:
    base_url: "{{ base_url }}"
    api_key: "{{ api_key }}"
    project_ids: [wispy-lake-12345678]
    statuses: [failed, error]
    state_file: /var/lib/clouddb/failures.json
    backfill: 1h
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

# ansible-rulebook runs this file by its path. Ansible's own importer is not at work there, so Python has to be told in which
# folder ansible_collections is.
sys.path += {
    str(folder.parent) for folder in Path(__file__).absolute().parents if folder.name == "ansible_collections"
} - set(sys.path)

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._http.session import REQUESTS_IMPORT_ERROR
from ansible_collections.clouddb.control.plugins.plugin_utils._events.follower import ChangeSource, EventQueue
from ansible_collections.clouddb.control.plugins.plugin_utils._events.options import change_options


async def main(queue: EventQueue, args: dict[str, Any]) -> None:
    """Put events into the queue until cancelled. Raises ClouddbError when there is no use in going on."""
    if REQUESTS_IMPORT_ERROR:
        raise ClouddbError(f"the Python that runs ansible-rulebook, {sys.executable}, needs the package requests")
    # ansible-rulebook adds this argument where a source has feedback: true.
    feedback = args.get("eda_feedback_queue")
    options = change_options({name: value for name, value in args.items() if name != "eda_feedback_queue"}, os.environ)
    await ChangeSource(options, queue, feedback).run()


if __name__ == "__main__":

    class PrintingQueue:
        """Shows the events, without any rules."""

        async def put(self, event: Any, /) -> None:
            print(event)

    asyncio.run(main(PrintingQueue(), {}))
