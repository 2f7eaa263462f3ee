# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the body of an error status says, in whatever shape (api.md leaves it open). Keeps P5 and P11."""

from __future__ import annotations

from typing import Any

from .._errors import sentence
from .._json import decode
from .._untrusted import displayable
from .connection import Connection

# The fields that say what is wrong, and those that say more about it. Of each, the first one with a text counts.
SUMMARY = ("message", "msg", "error_description", "title", "error")
DETAIL = ("detail", "errors")


def error_fields(content: bytes, connection: Connection) -> dict[str, str]:
    """The service's reason as C(message), its C(code) and its C(request_id), those that the body has."""
    if is_empty_or_html(content):
        return {}
    text = content.decode(errors="replace")
    try:
        body = connection.masked(decode(content))
    except ValueError:
        body = text
    outer = body if isinstance(body, dict) else {}
    inner = outer["error"] if isinstance(outer.get("error"), dict) else {}
    fields = {
        "message": _reason(body) or (_reason(text) if body else ""),
        "code": _scalar(outer.get("code")) or _scalar(inner.get("code")),
        "request_id": _scalar(outer.get("request_id")) or _scalar(inner.get("request_id")),
    }
    return {name: displayable(connection.redact(value)) for name, value in fields.items() if value}


def is_empty_or_html(content: bytes) -> bool:
    """Whether the body is not that of an API, but for example that of a proxy."""
    return content.lstrip()[:1] in (b"", b"<")


def _reason(value: Any) -> str:
    """What a part of the body says, on one line. An object without the usual fields says all its texts."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return "; ".join(filter(None, map(_reason, value)))
    if not isinstance(value, dict):
        return ""
    # Some services begin the names with a capital.
    fields = {name.lower(): inner for name, inner in value.items()}
    summary, detail = _first(fields, SUMMARY), _first(fields, DETAIL)
    if not summary and not detail:
        return "; ".join(f"{name}: {text}" for name, inner in value.items() if (text := _reason(inner)))
    said = summary if detail in summary else f"{sentence(summary)} {detail}" if summary else detail
    place = _place(fields.get("loc") or fields.get("field"))
    return f"{place}: {said}" if place else said


def _place(value: Any) -> str:
    """Which part of the request is wrong: its path there, as FastAPI names it, or a name."""
    return ".".join(map(str, value)) if isinstance(value, list) else _reason(value)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next(filter(None, (_reason(fields.get(name)) for name in names)), "")


def _scalar(value: Any) -> str:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
