# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the statuses of an operation mean (api.md, Operation); any other status is taken as still going."""

from __future__ import annotations

DONE = frozenset({"finished", "skipped"})
BAD = frozenset({"failed", "error", "cancelled"})
GOING = frozenset({"scheduling", "running", "cancelling"})
