# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds out which keys are in use, among them the one that the task authenticates with."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .._http.client import Client
from .api import Key, list_keys, list_keys_if_valid

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


def key_of_another_name(
    client: Client, own: Client, listed: Sequence[Key], listed_by_own: Sequence[Key], named: Collection[int]
) -> Key | None:
    """The key that the client C(own) authenticates with, if it is surely none of those with the ids C(named).

    C(listed) are all keys before the first request of C(own), C(listed_by_own) those in the response to it. The key is known
    if it is the only one that is used whenever C(own) sends a request, and not when C(client) does.
    """
    first = _used_between(listed, listed_by_own)
    # A service that shows no use records uses late. Further lists would take seconds in each run, and show no more.
    if not first or first & set(named):
        return None
    client.clock.sleep(LIST_INTERVAL)
    again = list_keys_if_valid(own)
    if again is None:
        return None
    client.clock.sleep(LIST_INTERVAL)
    second, later = _used_between(listed_by_own, again), _used_between(again, list_keys(client))
    if (second | later) & set(named):
        return None
    candidates = [key for key in again if key["id"] in first & second - later]
    return candidates[0] if len(candidates) == 1 else None


def _used_between(earlier: Sequence[Key], later: Sequence[Key]) -> set[int]:
    """The ids of the keys that were used between two lists."""
    uses = {key["id"]: key.get("last_used_at") for key in earlier}
    return {key["id"] for key in later if uses.get(key["id"]) != key.get("last_used_at")}


def _uses(client: Client) -> tuple[set[int], set[int]]:
    """The ids of keys that are used between a first and a second list of keys, and between the second and a third."""
    lists = []
    for position in range(3):
        if position:
            client.clock.sleep(LIST_INTERVAL)
        lists.append(list_keys(client))
    first, then = (_used_between(earlier, later) for earlier, later in zip(lists, lists[1:]))
    return first, then
