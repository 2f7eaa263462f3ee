# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Import times by owner, from the output of python -X importtime."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.tests.benchmark.import_times import seconds_by_owner

# A module is listed after the modules that it imports, which are indented further.
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
import time:        30 |         30 |     dateutil
import time:        50 |         80 |   ansible_collections.hetzner.hcloud.plugins.module_utils.client
some other line
import time:         9 |          9 | requestsly
"""


def test_import_counts_for_its_first_importer() -> None:
    assert seconds_by_owner(REPORT) == {
        "collection": pytest.approx(0.000687),
        "requests": pytest.approx(0.00504),
        "ansible": pytest.approx(0.0055),
        "python": pytest.approx(0.000129),
    }
