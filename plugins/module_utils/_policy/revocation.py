# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports which keys violate a policy, and revokes them where the task asks for it. Keeps P3, P6 and P9."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from .._errors import Result
from .._http.client import Client
from .._http.errors import RequestFailed
from .._keys.keys import (
    Key,
    as_revoked,
    last_use,
    list_keys,
    not_revoked,
    orphaned_key,
    own_key_of,
    retry_advice,
    revoke_key,
)
from .._keys.scope import KeyScope
from .policy import KINDS, SURPLUS_KINDS, Finding, Policy, label, review

OWN_KEY = "It is the task's own key (own_key)."
IN_USE = "It was used while the task ran."
USES_NOT_LISTED = (
    "No key was revoked as never_used, because the service does not list the use of the task's own key either."
)
NO_SERVICE_TIME = "The responses have no Date header, so the ages of the keys are not known."
COMPLIES = "When the keys were listed again, it no longer violated the policy."
ANOTHER_REVOKED = "Another task or a user has revoked it in the meantime."
NOT_REACHED = "The task failed before it could be revoked."


class RevocationOptions(NamedTuple):
    """Which keys may be revoked: those with findings of C(kinds), at most C(max_revocations) keys, and not C(own_key) (its id or name)."""

    kinds: Collection[str]
    max_revocations: int
    own_key: str


def apply_policy(
    client: Client, scope: KeyScope, policy: Policy, options: RevocationOptions | None, check_mode: bool
) -> Result:
    """Compare the keys of this scope with the policy, and revoke keys unless C(options) is None.

    Returns the result of the module api_key_policy. Raises InvalidOption, ClouddbError, with the result so far, and what
    Client raises.
    """
    enforcement = _Enforcement(client, scope, policy, check_mode)
    if options:
        enforcement.revoke(options)
    return enforcement.result()


class _Enforcement:
    """The state of a task: the keys and findings at its start, and what has become of the keys, by their ids.

    C(kept) has the reasons, C(revoked) the revocation results, and C(gone) the keys that others have revoked. C(kinds) are the
    requested ones, without C(never_used) where the service does not list uses.
    """

    def __init__(self, client: Client, scope: KeyScope, policy: Policy, check_mode: bool):
        self._client = client
        self._scope = scope
        self._policy = policy
        self._check_mode = check_mode
        self._keys = list_keys(client, scope)
        self._now = client.service_now()
        self._review = review(self._keys, policy, self._now)
        self._requested_kinds: Collection[str] = ()
        self._kinds: Collection[str] = ()
        self._max_revocations = 0
        self._kept: dict[int, str] = {}
        self._revoked: dict[int, Key] = {}
        self._gone: set[int] = set()
        self._warnings: list[str] = []

    def revoke(self, options: RevocationOptions) -> None:
        """Revoke keys up to the limit. In check mode, only note them as revoked."""
        own = own_key_of(self._client, self._scope, self._keys, options.own_key)
        self._requested_kinds = self._kinds = options.kinds
        self._max_revocations = options.max_revocations
        if last_use(own) is None and "never_used" in self._kinds:
            # This task has used its own key. If that is not listed, other uses may not be, either.
            self._kinds = [kind for kind in self._kinds if kind != "never_used"]
            self._warnings.append(USES_NOT_LISTED)
        protected = dict(self._review.protected)
        if not self._client.knows_service_time:
            # Whether a key is in its grace period is not known, either.
            protected.update((key["id"], NO_SERVICE_TIME) for key in self._keys)
            advice = "Check the proxies between this machine and the service."
            self._warnings.append(f"No key is revoked. {NO_SERVICE_TIME} {advice}")
        protected[own["id"]] = OWN_KEY
        waiting = [key for key in self._review.due(self._kinds) if key["id"] not in protected]
        kept = {key["id"] for key in self._review.due(self._requested_kinds)} - {key["id"] for key in waiting}
        self._kept = {key_id: protected.get(key_id, USES_NOT_LISTED) for key_id in kept}
        while waiting and self._remaining():
            try:
                self._revoke_if_due(waiting[0])
            except RequestFailed as error:
                ids = [key["id"] for key in waiting[: self._remaining()]]
                raise orphaned_key(
                    f"{not_revoked(ids, error)} {retry_advice(error)}", ids, error, self.result()
                ) from error
            done = {*self._kept, *self._revoked, *self._gone}
            waiting = [key for key in waiting if key["id"] not in done]
        for key in waiting:
            self._kept[key["id"]] = f"More keys were due than max_revocations ({self._max_revocations}) allows."
        if waiting:
            self._warnings.append(
                f"Keys that remain to be revoked: {len(waiting)}. The task revokes at most {self._max_revocations}. Run it again, "
                "or increase max_revocations."
            )

    def _remaining(self) -> int:
        """How many keys may still be revoked. What others have revoked counts, so that a play with many hosts stops early."""
        return max(0, self._max_revocations - len(self._revoked) - len(self._gone))

    def _revoke_if_due(self, key: Key) -> None:
        """Revoke the key unless a new list is a reason to keep it, or the limit is reached. In check mode, only note it."""
        key_id = key["id"]
        try:
            listed = {
                other["id"]: other for other in list_keys(self._client, self._scope) if other["id"] not in self._revoked
            }
        except RequestFailed as error:
            # Only the list has failed: the key is still valid.
            error.may_have_acted = False
            raise
        self._gone.update({other["id"] for other in self._keys} - listed.keys() - self._revoked.keys())
        if key_id in self._gone or not self._remaining():
            return
        review_now = review(list(listed.values()), self._policy, self._client.service_now())
        if key_id in review_now.protected:
            self._kept[key_id] = review_now.protected[key_id]
        elif listed[key_id].get("last_used_at") != key.get("last_used_at"):
            self._kept[key_id] = IN_USE
        elif listed[key_id] not in review_now.due(self._kinds):
            self._kept[key_id] = COMPLIES
        elif revocation := as_revoked(key) if self._check_mode else revoke_key(self._client, key, self._scope):
            self._revoked[key_id] = revocation
        else:
            self._gone.add(key_id)

    def result(self) -> Result:
        """The result of the task so far."""
        after = [key for key in self._keys if key["id"] not in self._gone and key["id"] not in self._revoked]
        violations_after = {
            (finding.kind, finding.key["id"])
            for finding in review(after, self._policy, self._now).findings
            if finding.key
        }
        findings = [self._described(finding, violations_after) for finding in self._review.findings]
        counts = Counter(finding.kind for finding in self._review.findings)
        return {
            "changed": bool(self._revoked),
            "check_mode": self._check_mode,
            "findings": findings,
            "checked": self._policy.checked(),
            "summary": {kind: counts[kind] for kind in KINDS},
            "revoked": list(self._revoked.values()),
            "left": sorted({finding["key_id"] for finding in findings if finding["outcome"] == "kept"}),
            "diff": {"before": _lines(self._keys), "after": _lines(after)},
            "warnings": self._warnings,
        }

    def _described(self, finding: Finding, violations_after: Collection[tuple[str, int]]) -> dict[str, Any]:
        key, entry = finding.key or {}, finding.allowed
        key_id = key.get("id")
        kept_because = None
        outcome, text = "reported", ""
        if key_id in self._revoked:
            outcome, text = "revoked", " It would be revoked." if self._check_mode else " It was revoked."
        elif key_id in self._gone:
            outcome, text = "gone", f" {ANOTHER_REVOKED}"
        elif finding.kind in SURPLUS_KINDS and (finding.kind, key_id) not in violations_after:
            outcome, text = "gone", " This ends with the revocation of other keys."
        elif key_id is not None and finding.kind in self._requested_kinds:
            outcome, kept_because = "kept", self._kept.get(key_id, NOT_REACHED)
            text = f" It {'would not be' if self._check_mode else 'was not'} revoked. {kept_because}"
        return {
            "kind": finding.kind,
            "key_id": key_id,
            "name": finding.name,
            "title": finding.title,
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
