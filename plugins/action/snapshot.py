# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module in a fork where that is possible, and shows the progress of the wait. Keeps P10 and P12."""

from __future__ import annotations

from ..plugin_utils._progress import ProgressAction

ActionModule = ProgressAction.of(__name__)
