# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option C(fields): which fields of an item are returned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ._errors import InvalidOption
from ._options import not_blank
from ._untrusted import displayable

Item = dict[str, Any]


class Fields:
    """Reduces items to the fields of these names; to all fields if C(names) is None.

    C(optional) are fields that exist although items may lack them. Several threads may use an instance at once.
    """

    def __init__(self, names: Collection[str] | None = None, optional: Collection[str] = ()):
        self._names = names
        self._optional = optional
        self._seen: set[str] = set()

    def reduce(self, items: Iterable[Item], *further: str) -> list[Item]:
        """The items with the fields of these names, and with C(further) fields that are needed for a while."""
        if self._names is None:
            return list(items)
        kept = {*self._names, *further}
        reduced = []
        for item in items:
            self._seen.update(item)
            reduced.append({field: value for field, value in item.items() if field in kept})
        return reduced

    def warnings(self) -> list[str]:
        """A warning that names the fields that no item had; none if there were no items."""
        missing = [name for name in self._names or () if name not in self._seen and name not in self._optional]
        if not missing or not self._seen:
            return []
        there = ", ".join(displayable(field, 100) for field in sorted(self._seen))
        return [f"fields: no item has {_quoted(missing)}. The fields are {there}."]


def _quoted(names: Iterable[str]) -> str:
    return " or ".join(f"'{displayable(name, 100)}'" for name in names)


def checked_fields(params: Mapping[str, Any], optional: Collection[str] = ()) -> Fields:
    """The option C(fields). Raises InvalidOption for an empty list, which would leave nothing of an item, and for blank names."""
    names = not_blank(params, "fields")
    if names is not None and not names:
        raise InvalidOption("fields", "must not be empty. Omit the option to return all fields.")
    return Fields(names, optional)
