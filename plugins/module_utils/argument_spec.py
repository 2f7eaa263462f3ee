# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection options, as every module takes them."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import env_fallback


def connection_argument_spec(**options: Any) -> dict[str, Any]:
    """The argument spec of the connection options, together with a module's own."""
    return {
        "base_url": {"type": "str", "required": True, "fallback": (env_fallback, ["CLOUDDB_BASE_URL"])},
        "api_key": {"type": "str", "required": True, "no_log": True, "fallback": (env_fallback, ["CLOUDDB_API_KEY"])},
        "validate_certs": {"type": "bool", "default": True},
        "ca_path": {"type": "path"},
        "allow_http": {"type": "bool", "default": False},
        "api_timeout": {"type": "float", "default": 30},
        "api_retries": {"type": "int", "default": 5},
        **options,
    }
