# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client. Keeps P11: modules import it first, and on a Python older than 3.9, only this file and they themselves can be loaded."""

import json
import sys

# As the User-Agent header has it; a test compares it with galaxy.yml.
COLLECTION_VERSION = "1.1.0"
MIN_PYTHON = (3, 9)

if sys.version_info < MIN_PYTHON:
    version = ".".join(map(str, sys.version_info[:3]))
    message = (
        f"The module needs Python 3.9 or later, and {sys.executable} is Python {version}. "
        "Set ansible_python_interpreter to a later one on the host."
    )
    sys.stdout.write(json.dumps({"failed": True, "msg": message, "failure": {"kind": "unsupported_python"}}))
    raise SystemExit(1)
