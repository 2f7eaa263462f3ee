# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operations of large accounts: complete, with two fields each, and only their summary."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.clouddb.control.tests.benchmark import large_account
from ansible_collections.clouddb.control.tests.benchmark.playbooks import keep_payloads
from ansible_collections.clouddb.control.tests.benchmark.processes import interleaved, medians, usage_of

RUNS = 3
PAGE_SIZE = 1000
RESULTS: dict[str, dict[str, Any]] = {
    "complete": {},
    "fields: [id, status]": {"fields": ["id", "status"]},
    "summary_only: true": {"summary_only": True},
}


class Case(NamedTuple):
    """What to return of the operations of this number of projects: a key of RESULTS."""

    result: str
    projects: int


CASES = (
    *(Case(result, 200) for result in RESULTS),
    *(Case("summary_only: true", projects) for projects in (500, 1000, 2000)),
)


def measure() -> dict[str, Any]:
    """Resource usage of the module's process, and the size of its result, in each case."""
    with large_account.running() as address, tempfile.TemporaryDirectory() as folder:
        tasks = [
            {
                "clouddb.control.operation_info": {
                    "base_url": f"{address}/{case.projects}/api/v2",
                    "api_key": "key-of-the-benchmark",
                    "page_size": PAGE_SIZE,
                    **RESULTS[case.result],
                }
            }
            for case in CASES
        ]
        payloads = keep_payloads(tasks, {}, Path(folder))
        programs = {str(number): partial(usage_of, sys.executable, str(path)) for number, path in enumerate(payloads)}
        measured = interleaved(RUNS, **programs)
        return {
            "runs": RUNS,
            "cases": [
                {
                    **case._asdict(),
                    **_result(case, payload),
                    "module": medians(measured[str(number)])._asdict(),
                }
                for number, (case, payload) in enumerate(zip(CASES, payloads))
            ],
        }


def _result(case: Case, payload: Path) -> dict[str, int]:
    """The size of the result, and the number of operations in its summary. Raises ValueError if operations are missing."""
    done = subprocess.run([sys.executable, str(payload)], stdout=subprocess.PIPE, check=True)
    counted = json.loads(done.stdout)["summary"]["total"]
    if counted != case.projects * large_account.OPERATIONS_PER_PROJECT:
        raise ValueError(f"{case}: {counted} operations were counted.")
    return {"result_bytes": len(done.stdout), "operations": counted}
