# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of the API and of the control endpoints."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.convertors import StringConvertor, register_url_convertor

BASE_PATH = "/api/v2"
CONTROL_PATH = "/_sandbox"


class EncodedSegment(StringConvertor):
    """Parameter of a path. Paths are decoded after routing, because a name can contain an encoded `/`."""

    def convert(self, value: str) -> str:
        return unquote(value)


register_url_convertor("str", EncodedSegment())


def is_below(base: str, path: str) -> bool:
    return path == base or path.startswith(base + "/")
