# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports which keys violate a policy, and revokes them where the task asks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, Callable, NamedTuple

from .._clock import Deadline
from .._errors import RequestFailed
from .._http.client import Client
from .._http.transport import pause_before_retry
from .._keys.api import Key, OrphanedKey, as_revoked, list_keys, not_revoked, own_key_of, retry_advice, revoke_key
from .._keys.ensure import Result
from .policy import KINDS, SURPLUS_KINDS, Finding, Policy, Review, counted, label, review

OWN_KEY = "It is the task's own key (own_key)."
IN_USE = "It was used while the task ran."
USES_NOT_LISTED = (
    "No key was revoked as never_used, because the service does not list the use of the task's own key either."
)
COMPLIES = "When the keys were listed again, it no longer violated the policy."
NOT_FOUND = "The service lists the key, but returned 404 to its revocation."
ANOTHER_REVOKED = "Another task or a user has revoked it in the meantime."
NOT_REACHED = "The task failed before it could be revoked."


class Revocation(NamedTuple):
    """What may be revoked: keys with findings of C(kinds), at most C(limit) keys, and not C(own_key) (its id or name)."""

    kinds: Collection[str]
    limit: int
    own_key: str


class _Progress(NamedTuple):
    """What has become of the keys: revocation results, why keys were kept (by id), and ids of those that others have revoked."""

    revoked: list[Key]
    kept: dict[int, str]
    gone: set[int]

    def revoked_ids(self) -> set[int]:
        return {key["id"] for key in self.revoked}

    def remaining(self, limit: int) -> int:
        """How many keys may still be revoked."""
        return max(0, limit - len(self.revoked) - len(self.gone))


def apply_policy(client: Client, policy: Policy, revocation: Revocation | None, check_mode: bool) -> Result:
    """Compare the account's keys with the policy, and revoke keys unless C(revocation) is None.

    Returns the result of the module api_key_policy. Raises InvalidOption, OrphanedKey, with the result so far, and what
    Client raises.
    """
    keys = list_keys(client)
    now = client.service_now()
    found = review(keys, policy, now)
    progress = _Progress([], {}, set())
    if revocation is None:
        return {**_result(keys, policy, None, found, progress, now, check_mode), "warnings": []}
    own = own_key_of(keys, revocation.own_key)
    revocation, warnings = _without_unlisted_uses(revocation, own)
    reasons = {**found.protected, own["id"]: OWN_KEY}
    due = found.due(revocation.kinds)
    progress.kept.update({key["id"]: reasons[key["id"]] for key in due if key["id"] in reasons})
    revocable = [key for key in due if key["id"] not in reasons]
    result = partial(_result, keys, policy, revocation, found, progress, now, check_mode)
    if check_mode:
        _predict(client, policy, revocation, revocable, progress)
    else:
        _revoke(client, policy, revocation, keys, revocable, progress, result)
    warnings += _warning_of_limit(revocation, revocable, progress)
    return {**result(), "warnings": warnings}


def _without_unlisted_uses(revocation: Revocation, own: Key) -> tuple[Revocation, list[str]]:
    """What may be revoked, and warnings. This task has used its own key: if that is not listed, other uses may not be, either."""
    if own.get("last_used_at") or "never_used" not in revocation.kinds:
        return revocation, []
    return revocation._replace(kinds=[kind for kind in revocation.kinds if kind != "never_used"]), [USES_NOT_LISTED]


def _revoke(
    client: Client,
    policy: Policy,
    revocation: Revocation,
    keys: Sequence[Key],
    revocable: Sequence[Key],
    progress: _Progress,
    result: Callable[[], Result],
) -> None:
    """Revoke keys up to the limit. Raises OrphanedKey, with the result so far."""
    for position, key in enumerate(revocable):
        remaining = revocable[position:][: progress.remaining(revocation.limit)]
        if not remaining:
            return
        try:
            _revoke_if_due(client, policy, revocation, keys, key, progress)
        except RequestFailed as error:
            ids = [other["id"] for other in remaining]
            raise OrphanedKey(f"{not_revoked(ids, error)} {retry_advice(error)}", ids, error, result()) from error


def _revoke_if_due(
    client: Client, policy: Policy, revocation: Revocation, keys: Sequence[Key], key: Key, progress: _Progress
) -> None:
    """Revoke the key unless a new list is a reason to keep it, or the limit is reached.

    After a transient error, which may take minutes to pass, the keys are listed again before the next attempt. An error is
    raised with C(may_have_acted) if the key may be revoked.
    """
    may_be_revoked = False
    try:
        for attempt in count(1):
            # A list may still show what this task has revoked.
            revoked = progress.revoked_ids()
            current = [other for other in list_keys(client) if other["id"] not in revoked]
            found = review(current, policy, client.service_now())
            listed = {other["id"] for other in current}
            if may_be_revoked and key["id"] not in listed:
                progress.revoked.append(as_revoked(key))
                return
            # What others have revoked counts, so that a play with many hosts stops early.
            progress.gone.update({other["id"] for other in keys} - listed - revoked)
            if key["id"] in progress.gone or not progress.remaining(revocation.limit):
                return
            reason = _reason_to_keep(key, current, found, revocation.kinds)
            if reason:
                progress.kept[key["id"]] = reason
                return
            try:
                revocation_result = revoke_key(client.with_deadline(_deadline(client)), key)
            except RequestFailed as error:
                may_be_revoked = may_be_revoked or error.may_have_acted
                if not error.transient or attempt > client.connection.api_retries:
                    raise
                pause = pause_before_retry(attempt, None, client.clock.utcnow())
                client.clock.sleep(max(pause, error.retry_after or 0.0))
                continue
            if revocation_result or may_be_revoked:
                progress.revoked.append(revocation_result or as_revoked(key))
            elif key["id"] in {other["id"] for other in list_keys(client)}:
                progress.kept[key["id"]] = NOT_FOUND
            else:
                progress.gone.add(key["id"])
            return
    except RequestFailed as error:
        # The keys are only listed otherwise.
        error.may_have_acted = may_be_revoked
        raise


def _deadline(client: Client) -> Deadline:
    """For a single attempt of a request."""
    return Deadline.after(client.clock, client.connection.api_timeout)


def _predict(
    client: Client, policy: Policy, revocation: Revocation, revocable: Sequence[Key], progress: _Progress
) -> None:
    """Note what _revoke() would do if nobody else changed the account."""
    current = list_keys(client) if revocable else []
    now = client.service_now()
    for key in revocable:
        if not progress.remaining(revocation.limit):
            return
        if key["id"] not in {other["id"] for other in current}:
            progress.gone.add(key["id"])
            continue
        reason = _reason_to_keep(key, current, review(current, policy, now), revocation.kinds)
        if reason:
            progress.kept[key["id"]] = reason
        else:
            progress.revoked.append(as_revoked(key))
            current = [other for other in current if other["id"] != key["id"]]


def _reason_to_keep(key: Key, current: Sequence[Key], found: Review, kinds: Collection[str]) -> str:
    """Why the key, which is in the current list, is not revoked after all; empty if it is."""
    listed = next(other for other in current if other["id"] == key["id"])
    if key["id"] in found.protected:
        return found.protected[key["id"]]
    if listed.get("last_used_at") != key.get("last_used_at"):
        return IN_USE
    return "" if listed in found.due(kinds) else COMPLIES


def _warning_of_limit(revocation: Revocation, revocable: Sequence[Key], progress: _Progress) -> list[str]:
    """The warning about keys that are kept only because of the limit, which is noted in the progress."""
    done = {*progress.kept, *progress.gone, *progress.revoked_ids()}
    left = [key["id"] for key in revocable if key["id"] not in done]
    progress.kept.update(
        dict.fromkeys(left, f"The task revokes at most {counted(revocation.limit, 'key')} (max_revocations).")
    )
    if not left:
        return []
    more = "1 more key was" if len(left) == 1 else f"{len(left)} more keys were"
    return [
        f"{more} to be revoked, but the task revokes at most {revocation.limit}. Run the task again, or increase max_revocations."
    ]


def _result(
    keys: Sequence[Key],
    policy: Policy,
    revocation: Revocation | None,
    found: Review,
    progress: _Progress,
    now: datetime,
    check_mode: bool,
) -> Result:
    kinds = revocation.kinds if revocation else ()
    revoked = progress.revoked_ids()
    after = [key for key in keys if key["id"] not in revoked | progress.gone]
    obsolete = _obsolete(found, review(after, policy, now))
    counts = Counter(finding.kind for finding in found.findings)
    findings = [
        _finding_as_dict(finding, kinds, revoked, progress, finding in obsolete, check_mode)
        for finding in found.findings
    ]
    return {
        "changed": bool(revoked),
        "findings": findings,
        "checked": policy.checked(),
        "summary": {kind: counts[kind] for kind in KINDS},
        "revoked": progress.revoked,
        "left": sorted({finding["key_id"] for finding in findings if finding["outcome"] == "kept"}),
        "diff": {"before": _lines(keys), "after": _lines(after)},
    }


def _obsolete(found: Review, after: Review) -> list[Finding]:
    """The findings on surplus keys that are none any more, because other keys were revoked."""
    remaining = {(finding.kind, finding.key["id"]) for finding in after.findings if finding.key}
    return [
        finding
        for finding in found.findings
        if finding.kind in SURPLUS_KINDS and finding.key and (finding.kind, finding.key["id"]) not in remaining
    ]


def _finding_as_dict(
    finding: Finding,
    kinds: Collection[str],
    revoked: Collection[int],
    progress: _Progress,
    is_obsolete: bool,
    check_mode: bool,
) -> dict[str, Any]:
    key, entry = finding.key or {}, finding.allowed
    key_id = key.get("id")
    kept_because = None
    outcome, text = "reported", ""
    if key_id in revoked:
        outcome, text = "revoked", " It would be revoked." if check_mode else " It was revoked."
    elif key_id in progress.gone:
        outcome, text = "gone", f" {ANOTHER_REVOKED}"
    elif is_obsolete:
        outcome, text = "gone", " This ends with the revocation of other keys."
    elif key_id is not None and finding.kind in kinds:
        outcome, kept_because = "kept", progress.kept.get(key_id, NOT_REACHED)
        text = f" It {'would not be' if check_mode else 'was not'} revoked. {kept_because}"
    return {
        "kind": finding.kind,
        "key_id": key_id,
        "name": finding.name,
        "message": finding.message + text,
        "owner": entry.owner if entry else None,
        "reason": entry.reason if entry else None,
        "created_at": key.get("created_at"),
        "last_used_at": key.get("last_used_at"),
        "outcome": outcome,
        "kept_because": kept_because,
    }


def _lines(keys: Iterable[Key]) -> str:
    """The keys as sorted lines, for a diff."""
    return "".join(f"{line}\n" for line in sorted(label(key) for key in keys))
