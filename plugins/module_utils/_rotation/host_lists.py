# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Known keys as JSON, in which each list of hosts is named by an id: a result grows with the number of hosts, not with its square.

Keeps P12.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .record import KnownKey, checksum


def keys_with_ids(keys: Mapping[int, KnownKey], known_id: str | None) -> tuple[list[list[Any]], list[str]]:
    """The keys as JSON, in which ids replace the lists of hosts; and these lists, without the one that the reader knows.

    Each list has the names of all hosts, and mostly, all hosts have the same one: if each host returned it, a run would
    move the square of their number. A list is one text, because Ansible takes long for lists with many names.
    """
    texts = {key_id: _list_as_text(key.hosts) for key_id, key in keys.items()}
    items = [[key_id, _id_of(texts[key_id]), key.sha256, key.confirmed] for key_id, key in sorted(keys.items())]
    return items, sorted({text for text in texts.values() if _id_of(text) != known_id})


def keys_from_ids(
    items: Iterable[Sequence[Any]], hosts: Iterable[str], host_lists: Iterable[str]
) -> dict[int, KnownKey]:
    """The inverse of keys_with_ids(). C(hosts) is the list that the reader knows."""
    lists = {_id_of(text): json.loads(text) for text in (_list_as_text(hosts), *host_lists)}
    return {key_id: KnownKey(lists[id_of_hosts], *rest) for key_id, id_of_hosts, *rest in items}


def id_of_list(hosts: Iterable[str]) -> str:
    """The id of a list of hosts. The role calculates the same one in C(api_key_rotation__play_hosts_id)."""
    return _id_of(_list_as_text(hosts))


def _list_as_text(hosts: Iterable[str]) -> str:
    return json.dumps(sorted(hosts))


def _id_of(text: str) -> str:
    return checksum(text)[:16]
