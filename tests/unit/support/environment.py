# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment variables that the code under test reads."""

from __future__ import annotations

import os

import pytest


def clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove this machine's settings for proxies, certificates and the service."""
    for name in list(os.environ):
        if (
            name.lower().endswith("_proxy")
            or name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC")
            or name.startswith("CLOUDDB_")
        ):
            monkeypatch.delenv(name)
