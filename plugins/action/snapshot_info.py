# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module in a fork where that is possible. Keeps P12."""

from __future__ import annotations

from ..plugin_utils._fork import ForkAction

ActionModule = ForkAction.of(__name__)
