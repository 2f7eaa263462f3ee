# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the progress of the wait. Keeps P10."""

from __future__ import annotations

from ..plugin_utils._progress import ProgressAction

ActionModule = ProgressAction
