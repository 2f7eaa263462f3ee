# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds out which keys are in use, among them the one that the task authenticates with."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .._http.client import Client
from .api import EARLIEST, Key, list_keys, list_keys_if_valid, time_of

# The interval between the lists of keys that show which keys are in use, in seconds.
LIST_INTERVAL = 1.0


def keys_in_use(client: Client, own: Collection[int] = ()) -> tuple[set[int], bool]:
    """The ids of keys that are used now, and whether the one that this task authenticates with is surely among them.

    C(own) are the ids of keys that are known to have the secret that this task authenticates with. The service does not say
    which key a request was sent with, but when each key was last used: if C(own) is empty, this task's own key is one whose
    last use changes while it lists the keys, unless the service shows uses late.
    """
    used, may_be_own = _uses(client)
    return {*used, *own}, bool(may_be_own) or bool(own)


def own_key_candidates(client: Client, listed: Sequence[Key], keys: Sequence[Key]) -> set[int]:
    """The ids of the keys that this task may authenticate with; empty if it is surely none of C(keys), or unknown.

    C(listed) are all keys of the account. A single id is that of this task's own key.
    """
    if len(listed) == 1:
        return {listed[0]["id"]}
    # The order of one key needs no further lists, which take seconds.
    if len(keys) < 2:
        return set()
    _used, may_be_own = _uses(client)
    return may_be_own


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
    """The ids of the keys that are used while this task lists the keys three times, and of those that may be its own.

    The latter are empty, for unknown, unless a key is used from each list to the next and the third list shows its use since
    the second: a service that shows uses late may show those of other keys only, and not yet those by this task.
    """
    first = list_keys(client)
    client.clock.sleep(LIST_INTERVAL)
    second = list_keys(client)
    # Date headers have whole seconds.
    second_at = client.service_now().replace(microsecond=0)
    client.clock.sleep(LIST_INTERVAL)
    third = list_keys(client)
    before, after = _used_between(first, second), _used_between(second, third)
    since_second = {key["id"] for key in third if (time_of(key, "last_used_at") or EARLIEST) >= second_at}
    # Uses are shown within less than two intervals then, so that the third list shows one by this task.
    is_shown = client.knows_service_time() and before & after & since_second
    return before | after, after if is_shown else set()
