# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the page Disturbed rotations from the results of the tests: C(python tests/rotation/table.py RESULTS > docs/docsite/rst/rotation_matrix.rst).

C(make test-all SUITE=rotation ARGS="--cells 0 --results RESULTS") writes the results.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from scenarios import SCENARIOS

PAGE = """\
..
  Copyright (c) clouddb.control contributors
  GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
  SPDX-License-Identifier: GPL-3.0-or-later

.. _ansible_collections.clouddb.control.docsite.rotation_matrix:

Disturbed rotations
===================

The role ``api_key_rotation`` must not lock a host out, whatever interrupts it and however a playbook includes it. The tests of the
collection run it with ``ansible-playbook`` for three hosts on a sandbox, and disturb each run at one step. The table counts {runs} runs.

Each cell shows how many runs completed, and how many failed. In both cases every host had a valid key afterwards:

completed
  Every host of the run has the newest key, and the exit status is 0.
failed
  No key that a host uses was revoked. The exit status is not 0, and the message names the hosts that do not have the newest key.

After each run, another one without disturbance completed. It revoked the keys that were left, or named them.

The events happen at each step that connects to a host, one in each run:

unreachable
  A host can't be reached: during this step, from this step on, or after the step has done its work but before its result arrives.
task fails
  The module fails on a host without a result.
killed
  ``ansible-playbook`` is killed with SIGKILL at the start of the step, or as soon as one host has completed it.
second rotation
  Another rotation of the same key runs from start to end.
file edited
  The file with the secret is overwritten with other text, with the older secret, or with nothing, or is removed. If the older secret
  is written to a file at the last moment, when its revocation has already been decided, the run fails and names the host.

.. list-table::
   :header-rows: 1

"""

COLUMNS = {
    "undisturbed": ("undisturbed",),
    "unreachable": ("unreachable", "unreachable_once", "response_lost"),
    "task fails": ("fails",),
    "killed": ("killed", "killed_after"),
    "second rotation": ("second_rotation",),
    "file edited": ("edited",),
}


def page(results: list[list[object]]) -> str:
    """The page, from the results of the cells."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    for scenario, _tasks, event, _host, _step, reached, completed, _found in results:
        [column] = [name for name, events in COLUMNS.items() if str(event).partition(":")[0] in events]
        counts[str(scenario), column, bool(completed)] += bool(reached or column == "undisturbed")
    rows = [["How the role is included", *COLUMNS]]
    for scenario in SCENARIOS:
        cells = [(counts[scenario.name, column, True], counts[scenario.name, column, False]) for column in COLUMNS]
        rows.append([scenario.name, *(f"{completed} / {failed}" for completed, failed in cells)])
    table = "".join("   * - " + "\n     - ".join(row) + "\n" for row in rows)
    return PAGE.format(runs=counts.total()) + table


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    sys.stdout.write(page([json.loads(line) for line in lines]))
