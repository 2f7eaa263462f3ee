# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose imports take how long, from Python's own report."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.tests.benchmark.import_times import by_owner

# A module stands below those that it imports, which are indented further.
REPORT = """\
import time: self [us] | cumulative | imported package
import time:       100 |        100 | encodings
import time:      2000 |       2000 |     json
import time:      3000 |       5000 |   ansible.module_utils.common
import time:       500 |       5500 | ansible.module_utils.basic
import time:        40 |         40 |         ssl
import time:      4000 |       4040 |       urllib3
import time:      1000 |       5040 |     requests
import time:         7 |          7 |     uuid
import time:       600 |       5647 |   ansible_collections.clouddb.control.plugins.module_utils._http.client
import time:        20 |       5667 | ansible_collections
some other line
import time:         9 |          9 | requestsly
"""


def test_an_import_counts_for_whoever_asked_for_it_first() -> None:
    seconds = by_owner(REPORT)
    assert seconds == {
        "this collection": pytest.approx(0.000607),
        "requests": pytest.approx(0.00504),
        "ansible": pytest.approx(0.0055),
        "python": pytest.approx(0.000129),
    }
