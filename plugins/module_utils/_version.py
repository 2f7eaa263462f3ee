# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's version, as the User-Agent header names it; a test holds it to galaxy.yml."""

from __future__ import annotations

COLLECTION_VERSION = "1.1.0"
