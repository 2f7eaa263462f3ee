# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the statuses of an operation mean (api.md, Operation); any other status is treated as unfinished."""

from __future__ import annotations

SUCCEEDED = frozenset({"finished", "skipped"})
FAILED = frozenset({"failed", "error", "cancelled"})
PENDING = frozenset({"scheduling", "running", "cancelling"})
