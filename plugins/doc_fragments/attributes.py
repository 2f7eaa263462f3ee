# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attributes that all modules share. Keeps P9."""

from __future__ import annotations


class ModuleDocFragment:
    """Platform and action group."""

    DOCUMENTATION = r"""
attributes:
  action_group:
    description: Use C(group/clouddb.control.all) in C(module_defaults) to set defaults for all modules of this collection.
    support: full
    membership:
      - clouddb.control.all
  platform:
    description: Target OS or families that can be operated against.
    support: full
    platforms: posix
"""

    # Of modules that change something.
    CHANGES = r"""
attributes:
  check_mode:
    description: Can run in check mode and return what it would change.
    support: full
  diff_mode:
    description: Returns what has changed, or would have changed in check mode, when in diff mode.
    support: full
"""

    # Of modules that change nothing.
    INFO = r"""
attributes:
  check_mode:
    description: Can run in check mode and return what it would return otherwise, as it changes nothing.
    support: full
  diff_mode:
    description: Returns what has changed, or would have changed in check mode, when in diff mode.
    support: N/A
    details:
      - This module changes nothing.
"""
