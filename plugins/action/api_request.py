# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the progress of the wait. Keeps P10."""

from __future__ import annotations

from ..plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """Runs the module of the task."""
