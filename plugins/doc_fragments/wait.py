# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of the options that all modules that wait for operations share. Keeps P4 and P10."""

from __future__ import annotations


class ModuleDocFragment:
    """Documents WAIT_OPTIONS of module_utils/_operations/wait.py."""

    DOCUMENTATION = r"""
options:
  timeout:
    description:
      - Time after which the task fails if operations are still unfinished, in seconds or with a unit, such as V(5m). V(0) polls once.
      - The time counts from the start of the task, and includes the requests that look up what the options name.
      - O(api_retries) has no effect on polls, because the next poll is the retry.
    type: raw
    default: 300
  interval:
    description: Maximum interval between polls, in seconds or with a unit, such as V(5s). The first intervals are shorter.
    type: raw
    default: 5
  failed_grace:
    description: How long the platform may take to retry a V(failed) operation before the task fails, in seconds or with a unit, such as V(1m).
    type: raw
    default: 0
  progress:
    description:
      - Whether the controller shows the progress of the wait on its standard error, with a line for each status change, and one a minute when
        nothing changes. If not set, the variable C(clouddb_progress) applies, or V(true).
      - Only waits that run on the controller show progress. No progress is shown in check mode, for tasks with C(async) or C(no_log), and if the
        stdout callback is C(json) or C(jsonl).
    type: bool
notes:
  - Set these options for all modules that wait in C(module_defaults) for the group C(clouddb.control.wait).
"""
