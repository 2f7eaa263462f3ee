# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a key gives access to: the account, an organization, or one project of it. Keeps P5 and P6.

The paths of keys of organizations are those of the published API document, because api.md only has keys of the account.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .._errors import InvalidOption
from .._options import identifier

# For modules about keys.
SCOPE_OPTIONS: dict[str, dict[str, Any]] = {"org_id": {"type": "str"}, "project_id": {"type": "str"}}


class KeyScope(NamedTuple):
    """Keys of the organization C(org_id), or else of the account; with C(project_id), those that are limited to this project."""

    org_id: str | None = None
    project_id: str | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The path of the list of these keys."""
        return ("organizations", self.org_id, "api_keys") if self.org_id else ("api_keys",)

    @property
    def path_to_verify(self) -> tuple[str, ...]:
        """A path that every key of this scope can GET."""
        return ("projects", self.project_id) if self.project_id else self.path

    @property
    def body(self) -> dict[str, str]:
        """The fields of the request that creates such a key, beside its name."""
        return {"project_id": self.project_id} if self.project_id else {}

    def includes(self, key: Mapping[str, Any]) -> bool:
        """Whether the key in the list of C(path) is of this scope, and of no other."""
        return key.get("project_id") == self.project_id


ACCOUNT = KeyScope()


def scope_from(params: Mapping[str, Any]) -> KeyScope:
    """The scope in the options C(org_id) and C(project_id). Raises InvalidOption."""
    scope = KeyScope(identifier(params, "org_id"), identifier(params, "project_id"))
    if scope.project_id and not scope.org_id:
        raise InvalidOption(
            "project_id", "requires org_id. A key that is limited to a project belongs to an organization."
        )
    return scope
