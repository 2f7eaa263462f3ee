# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds out which keys are in use, among them the one that the task authenticates with."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .._http.client import Client
from .api import Key, list_keys

# The interval between the lists of keys that show which keys are in use, in seconds.
LIST_INTERVAL = 1.0


def keys_in_use(client: Client, own: Collection[int] = ()) -> tuple[set[int], bool]:
    """The ids of keys that are used now, and whether the one that this task authenticates with is surely among them.

    C(own) are the ids of keys that are known to have the secret that this task authenticates with. The service does not say
    which key a request was sent with, but when each key was last used: if C(own) is empty, a key whose last use changes
    with every list is this task's own, unless the service records uses late.
    """
    first, then = _uses(client)
    return {*first, *then, *own}, bool(first & then) or bool(own)


def own_key_candidates(client: Client, listed: Sequence[Key], keys: Sequence[Key]) -> set[int]:
    """The ids of the keys that this task may authenticate with; empty if it is surely none of C(keys), or unknown.

    C(listed) are all keys of the account. A single id is that of this task's own key, unless the service records uses late.
    """
    if len(listed) == 1:
        return {listed[0]["id"]}
    # The order of one key needs no further lists, which take seconds.
    if len(keys) < 2:
        return set()
    first, then = _uses(client)
    return first & then


def _uses(client: Client) -> tuple[set[int], set[int]]:
    """The ids of keys that are used between a first and a second list of keys, and between the second and a third."""
    lists = []
    for position in range(3):
        if position:
            client.clock.sleep(LIST_INTERVAL)
        lists.append({key["id"]: key.get("last_used_at") for key in list_keys(client)})
    first, then = (
        {key_id for key_id, used_at in later.items() if earlier.get(key_id) != used_at}
        for earlier, later in zip(lists, lists[1:])
    )
    return first, then
