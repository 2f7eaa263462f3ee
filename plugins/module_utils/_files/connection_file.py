# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a connection string: its formats, what of it is shown, and what it must not replace. Keeps P5, P7 and P9."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

from .._errors import InvalidOption
from .._secrets import MASK, masked_text
from .secret_file import SecretFile

FORMATS = ("uri", "env", "env_literal")
# The content of a file that can be shown: what is before the password, the password, and what is after it.
_SHOWN = r"((?:(?:export\s+)?\w+\s*=\s*)?['\"]?postgres(?:ql)?://[^\s:/?@]+:)([^\s:/?@]+)(@[^\s@'\"]+['\"]?)"


def checked_variable(variable: str) -> str:
    """The name of a variable. Raises InvalidOption."""
    if not re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII):
        raise InvalidOption("variable", "must be a name of letters, digits and underscores, such as DATABASE_URL.")
    return variable


def write(dest: SecretFile, uri: str | None, form: str, variable: str) -> dict[str, Any]:
    """Write the connection string unless the file holds it; what that changed, or would in check mode.

    Without one, an earlier task would create it. Raises InvalidOption for a file with other content.
    """
    with dest.held():
        present = dest.read()
        if present and not _is_replaceable(present, variable):
            problem = (
                f"{dest.path} must hold a connection string or {variable} and nothing else. The file was not changed."
            )
            raise InvalidOption("dest", f"{problem} Set dest to another path, or remove the file.")
        if uri is None:
            return {"changed": True, "diff": {"before": {}, "after": {}}}
        content = _content(uri, form, variable)
        diff = _difference(present, content.rstrip())
        if present == content.rstrip():
            return {"changed": dest.set_attributes(dest.path), "diff": diff}
        with dest.replacement() as replace:
            replace(content)
    return {"changed": True, "diff": diff}


def _content(uri: str, form: str, variable: str) -> str:
    if form == "uri":
        return uri
    # In single quotes, dotenv libraries replace ${NAME}, and take a backslash for an escape.
    encoded = re.sub(r"[^\w!#%&()*+,./:;=?@\[\]~-]", lambda found: quote(found[0], safe=""), uri, flags=re.ASCII)
    quotes = "'" if form == "env" else ""
    return f"{variable}={quotes}{encoded}{quotes}\n"


def _is_replaceable(text: str, variable: str) -> bool:
    """Whether the text is one connection string or one assignment to the variable."""
    return re.fullmatch(rf"(?:(?:export\s+)?{variable}\s*=|postgres(?:ql)?://).*", text) is not None


def _difference(before: str | None, after: str) -> dict[str, dict[str, str]]:
    """The contents of the file without their secrets, and whether its password changes."""
    found = {side: re.fullmatch(_SHOWN, text) for side, text in (("before", before), ("after", after)) if text}
    diff = {
        side: {"content": masked_text(f"{match[1]}{MASK}{match[3]}") if match else MASK}
        for side, match in found.items()
    }
    if len({unquote(match[2]) for match in found.values() if match}) > 1:
        diff["before"]["password"], diff["after"]["password"] = "old", "new"
    return {"before": {}, **diff}
