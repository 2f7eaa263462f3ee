# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the account's keys with a policy: pure functions of the keys, the policy and the time. Keeps P3, P6 and P8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from .._errors import InvalidOption
from .._keys.keys import Key, all_but_latest, last_use
from .._patterns import is_pattern, matcher, normal, require_clear
from .._timestamps import BEGINNING, is_never, timestamp_of
from .._untrusted import displayable

# In the order in which findings on a key are listed.
KINDS = ("unknown", "expired", "idle", "never_used", "duplicate", "over_limit", "missing")
# A missing key can't be revoked.
REVOCABLE_KINDS = KINDS[:-1]
# Findings that depend on other keys.
SURPLUS_KINDS = ("duplicate", "over_limit")
MAX_NAME_LENGTH = 100


class Allowed(NamedTuple):
    """Keys that the policy declares: by exact name, or by a pattern with C(*), C(?) or C([])."""

    name: str
    max_keys: int | None = None
    owner: str | None = None
    reason: str | None = None

    @property
    def is_pattern(self) -> bool:
        return is_pattern(self.name)


class Policy(NamedTuple):
    """What the account's keys have to comply with; None: no limit, and for C(allowed): any name.

    C(grace) is the time after its creation or last use in which a key is not revoked.
    """

    allowed: Sequence[Allowed] | None
    max_age: timedelta | None
    max_idle: timedelta | None
    max_keys: int | None
    grace: timedelta

    def checked(self) -> list[str]:
        """The kinds of findings that the policy can lead to."""
        has_limit = self.max_keys is not None or any(entry.max_keys is not None for entry in self.allowed or ())
        skipped = {
            "unknown": self.allowed is None,
            "missing": all(entry.is_pattern for entry in self.allowed or ()),
            "expired": self.max_age is None,
            "idle": self.max_idle is None,
            "over_limit": not has_limit,
        }
        return [kind for kind in KINDS if not skipped.get(kind)]


class Finding(NamedTuple):
    """A key that violates the policy, or None where C(name) is declared and there is no key; C(message) is a sentence.

    C(title) is what it is about, with characters that can be displayed: the key, or the declared name.
    """

    kind: str
    key: Key | None
    name: str
    title: str
    message: str
    allowed: Allowed | None


class Review(NamedTuple):
    """The findings, sorted by kind and name, and why keys must not be revoked whatever the findings (sentences, by key id)."""

    findings: list[Finding]
    protected: dict[int, str]

    def due(self, kinds: Collection[str]) -> list[Key]:
        """The keys with findings of these kinds, those with the earliest last activity first.

        Keys that are only surplus come last: once the others are revoked, they may be within the limit.
        """
        found = [(finding.kind, finding.key) for finding in self.findings if finding.key and finding.kind in kinds]
        keys = {key["id"]: key for _kind, key in found}
        for_itself = {key["id"] for kind, key in found if kind not in SURPLUS_KINDS}
        return sorted(keys.values(), key=lambda key: (key["id"] not in for_itself, *_activity_order(key)))


def allowed_from(entries: Sequence[Mapping[str, Any]] | None) -> list[Allowed] | None:
    """The option C(allowed). Raises InvalidOption."""
    if entries is None:
        return None
    if not entries:
        raise InvalidOption("allowed", "must not be empty. Omit the option to allow all names.")
    allowed = [Allowed(**entry) for entry in entries]
    for entry in allowed:
        if not entry.name.strip():
            raise InvalidOption("allowed", "an entry has no name. Set name in each entry.")
        require_clear("allowed", entry.name)
        if entry.max_keys is not None and entry.max_keys < 1:
            raise InvalidOption("allowed", f"max_keys of '{entry.name}' must be 1 or more, not {entry.max_keys}")
    repeated = [name for name, count in Counter(normal(entry.name) for entry in allowed).items() if count > 1]
    if repeated:
        raise InvalidOption("allowed", f"'{repeated[0]}' occurs more than once. Set max_keys to allow several keys.")
    return allowed


def review(keys: Sequence[Key], policy: Policy, now: datetime) -> Review:
    """Compare all the account's keys with the policy; C(now) is the time by the service's clock."""
    entry_of = _entries_of(keys, policy.allowed)
    findings = [*_violations(keys, policy, now, entry_of), *_surplus(keys, policy, entry_of), *_missing(keys, policy)]
    findings.sort(key=lambda each: (KINDS.index(each.kind), each.name, each.key["id"] if each.key else 0))
    protected = {key["id"]: reason for key in keys if (reason := _reason_to_protect(key, policy, now))}
    return Review(findings, protected)


def name_of(key: Key) -> str:
    """The key's name; empty if the service sent none."""
    name = key.get("name")
    return name if isinstance(name, str) else ""


def label(key: Key) -> str:
    """The key in a message: its name and its id."""
    return f"{displayable(name_of(key), MAX_NAME_LENGTH) or 'A key without a name'} (id {key['id']})"


def _entries_of(keys: Sequence[Key], allowed: Sequence[Allowed] | None) -> dict[int, Allowed]:
    """The entry for each key that has one, by key id: the first whose name matches."""
    matchers = [(entry, matcher(entry.name)) for entry in allowed or ()]
    found = {}
    for key in keys:
        name = name_of(key)
        # A key with brackets in its name may be declared without a pattern in mind.
        entry = next((each for each, matches in matchers if matches(name) or normal(name) == normal(each.name)), None)
        if entry:
            found[key["id"]] = entry
    return found


def _finding(kind: str, key: Key, text: str, entry: Allowed | None) -> Finding:
    return Finding(kind, key, name_of(key), label(key), _message(f"{label(key)} {text}", entry), entry)


def _message(text: str, entry: Allowed | None) -> str:
    """The sentence with the texts of the entry for the reader."""
    texts = [text]
    if entry and entry.owner:
        texts.append(f"Owner: {entry.owner.rstrip('.')}")
    if entry and entry.reason:
        texts.append(f"Reason: {entry.reason.rstrip('.')}")
    return "".join(f"{displayable(each)}. " for each in texts).rstrip()


def _violations(
    keys: Sequence[Key], policy: Policy, now: datetime, entry_of: Mapping[int, Allowed]
) -> Iterable[Finding]:
    """The findings on each key that do not depend on other keys. With dates, so that the message about a key stays the same."""
    for key in keys:
        entry = entry_of.get(key["id"])
        created_at, last_used_at = timestamp_of(key, "created_at"), last_use(key)
        if policy.allowed is not None and entry is None:
            yield _finding("unknown", key, "matches no name that the policy allows", None)
        if created_at and policy.max_age is not None and now - created_at > policy.max_age:
            yield _finding("expired", key, f"was created on {created_at.date()}, longer ago than max_age", entry)
        if last_used_at and policy.max_idle is not None and now - last_used_at > policy.max_idle:
            yield _finding("idle", key, f"was last used on {last_used_at.date()}, longer ago than max_idle", entry)
        if created_at and is_never(key, "last_used_at") and now - created_at > policy.grace:
            yield _finding("never_used", key, f"was created on {created_at.date()} and never used", entry)


def _surplus(keys: Sequence[Key], policy: Policy, entry_of: Mapping[int, Allowed]) -> Iterable[Finding]:
    """The keys beyond a limit, which are those with the earliest last activity."""
    by_name: dict[str, list[Key]] = {}
    by_entry: dict[Allowed, list[Key]] = {}
    for key in keys:
        entry = entry_of.get(key["id"])
        if entry and entry.max_keys is not None:
            by_entry.setdefault(entry, []).append(key)
        elif name_of(key):
            by_name.setdefault(name_of(key), []).append(key)
    for same in by_name.values():
        for key in _beyond_limit(same, 1):
            text = f"is one of {len(same)} keys of that name, and not the one that was created or used last"
            yield _finding("duplicate", key, text, entry_of.get(key["id"]))
    over = set()
    for entry, matching in by_entry.items():
        for key in _beyond_limit(matching, entry.max_keys or 0):
            over.add(key["id"])
            name = displayable(entry.name, MAX_NAME_LENGTH)
            text = f"is one of {len(matching)} keys that match '{name}', more than max_keys of {entry.max_keys}"
            yield _finding("over_limit", key, text, entry)
    if policy.max_keys is not None:
        # The keys that are over the limit of an entry are reported already. Only those beyond them are over this limit.
        for key in _beyond_limit([key for key in keys if key["id"] not in over], policy.max_keys):
            text = f"is one of {len(keys)} keys of the account, more than max_keys of {policy.max_keys}"
            yield _finding("over_limit", key, text, entry_of.get(key["id"]))


def _missing(keys: Sequence[Key], policy: Policy) -> Iterable[Finding]:
    names = {normal(name_of(key)) for key in keys}
    for entry in policy.allowed or ():
        if not entry.is_pattern and normal(entry.name) not in names:
            name = displayable(entry.name, MAX_NAME_LENGTH)
            message = _message(f"There is no key named '{name}'", entry)
            yield Finding("missing", None, entry.name, name, message, entry)


def _beyond_limit(keys: Sequence[Key], limit: int) -> list[Key]:
    """The keys that are too many: all but those with the latest activity.

    A key whose last activity is unknown counts as the earliest. It is protected, and no other is revoked in its place.
    """
    return all_but_latest(sorted(keys, key=_activity_order), limit)


def _activity_order(key: Key) -> tuple[datetime, int]:
    """Keys are sorted by their last activity: the last use, or the creation where that was later."""
    return _last_activity(key) or BEGINNING, key["id"]


def _last_activity(key: Key) -> datetime | None:
    """None if the service sent no valid timestamps."""
    created_at, last_used_at = timestamp_of(key, "created_at"), last_use(key)
    if created_at is None or (last_used_at is None and not is_never(key, "last_used_at")):
        return None
    return max(created_at, last_used_at or created_at)


def _reason_to_protect(key: Key, policy: Policy, now: datetime) -> str:
    """Why the key must not be revoked; empty if it may be."""
    activity = _last_activity(key)
    if activity is None:
        return "The service sent no valid created_at and last_used_at, so it is not known when the key was last used."
    if not name_of(key):
        return "The service sent no name."
    if now - activity <= policy.grace:
        return "It was created or used within the grace period."
    return ""
