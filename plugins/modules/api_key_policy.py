#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the account's API keys with a policy, and revokes those that violate it. Keeps P6, P9 and P11."""

DOCUMENTATION = r"""
module: api_key_policy
short_description: Enforce a policy for the API keys of the account
version_added: 1.1.0
description:
  - Compares all active API keys of the account with a policy and returns what violates it. With O(action=revoke), revokes keys that violate it.
  - The role P(clouddb.control.api_key_policy#role) uses this module and writes the findings to a file for CI.
  - The module never revokes the task's own key (O(own_key)), a key that was created or used within O(grace), a key whose last use changes while the
    task runs, or a key without valid timestamps or without a name. It lists the keys again before each revocation, and keeps a key that no longer
    violates the policy.
  - Ages are measured with the service's clock. If its responses have no C(Date) header, no key is revoked, and the ages in the findings are
    measured with the clock of the machine that sends the requests. Where even the task's own key is V(idle), that clock is probably wrong.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
options:
  allowed:
    description:
      - Names that keys may have. The first entry that matches the name of a key applies to it.
      - If not set, any name is allowed.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Exact name, or a pattern with V(*), V(?) or V([]) as in a shell. Names are case-sensitive. V([*]), V([?]) and V([[]) stand for the
            characters themselves, V([!a-z]) for other characters than these. A V([) without V(]), V([^a-z]) and classes such as V([[:digit:]])
            are refused. A key whose name equals the pattern is allowed, too.
          - A key with an exact name has to exist. Otherwise it is reported as V(missing).
        type: str
        required: true
      max_keys:
        description:
          - Maximum number of keys that match the entry, and may then have the same name.
          - If not set, their number is not limited, but each needs a name of its own.
        type: int
      owner:
        description: Who is responsible for these keys. Included in findings.
        type: str
      reason:
        description: What these keys are for. Included in findings.
        type: str
  max_age:
    description: Maximum time since the creation of a key, in seconds or with a unit, such as V(90d). If not set, there is no limit.
    type: raw
  max_idle:
    description: Maximum time since the last use of a key, in seconds or with a unit, such as V(30d). If not set, there is no limit.
    type: raw
  max_keys:
    description: Maximum number of keys in the account. If not set, there is no limit.
    type: int
  action:
    description:
      - V(report) changes nothing.
      - V(revoke) revokes keys with findings of O(revoke_kinds).
    type: str
    choices: [report, revoke]
    default: report
  org_id:
    description: Id of the organization whose keys to review. If not set, the keys of the account are reviewed. No environment variable sets it.
    type: str
    version_added: 2.0.0
  project_id:
    description: Id of a project. Only the keys that are limited to it are reviewed. Requires O(org_id).
    type: str
    version_added: 2.0.0
  own_key:
    description:
      - Id or name of the task's own key, which the service does not show. Required with O(action=revoke).
      - The task fails before it revokes a key unless exactly one key has this id or name.
    type: str
    version_added: 2.0.0
  revoke_kinds:
    description: Kinds of findings for which O(action=revoke) revokes keys. RV(findings) describes the kinds.
    type: list
    elements: str
    choices: [unknown, expired, idle, never_used, duplicate, over_limit]
    default: [unknown, expired, idle]
  max_revocations:
    description:
      - Maximum number of keys to revoke in one task, starting with those that were created or used least recently. Keys that are only V(duplicate) or
        V(over_limit) come last.
      - The limit applies to each host that runs the task, so use C(run_once). With C(serial) or the strategy C(free), the task still runs once for
        each batch or host. Keys that others revoke during the task count toward the limit.
    type: int
    default: 10
  grace:
    description:
      - Time after its creation or last use during which a key is not revoked, in seconds or with a unit, such as V(1h).
      - Set it to more than the time between the creation of a key and its first use. Otherwise a key can be revoked while it is being deployed.
    type: raw
    default: 1h
notes:
  - A revocation cannot be undone. Use check mode to see which keys would be revoked.
seealso:
  - module: clouddb.control.api_key
  - module: clouddb.control.api_key_info
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Report keys that violate the policy
  clouddb.control.api_key_policy:
    allowed:
      - name: ci
        owner: platform team
      - name: deploy-*
        max_keys: 20
        reason: one key for each host
    max_age: 90d
    max_idle: 30d
  register: policy

- name: Show the findings
  ansible.builtin.debug:
    msg: "{{ policy.findings | map(attribute='message') }}"

- name: Revoke keys that nobody has used for half a year, and keys that were never used
  clouddb.control.api_key_policy:
    max_idle: 26w
    action: revoke
    own_key: automation
    revoke_kinds: [idle, never_used]
    grace: 1d
"""

RETURN = r"""
findings:
  description: What violates the policy, sorted by kind and name. A key can have several findings.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description:
        - V(unknown) if the name matches no entry of O(allowed).
        - V(expired) if the key was created longer ago than O(max_age).
        - V(idle) if it was last used longer ago than O(max_idle).
        - V(never_used) if it was never used, and was created longer ago than O(grace).
        - V(duplicate) if there are several keys of the name, and its entry in O(allowed) has no C(max_keys).
        - V(over_limit) if more keys match an entry in O(allowed) than its C(max_keys), or if the account has more than O(max_keys). This and
          V(duplicate) are found for the surplus keys, which are those that were created or used least recently.
        - V(missing) if O(allowed) has an exact name, and there is no such key.
      type: str
      sample: expired
    key_id:
      description: Id of the key. V(null) if the kind is V(missing).
      type: int
    name:
      description: Name of the key.
      type: str
      sample: deploy-web1
    title:
      description: Name and id of the key, or the name that is V(missing). Characters that cannot be displayed are escaped.
      type: str
      sample: deploy-web1 (id 165431)
    message:
      description: The finding and its outcome as sentences, with the owner and the reason of the entry in O(allowed).
      type: str
      sample: "deploy-web1 (id 165431) was created on 2026-08-16, longer ago than max_age. Owner: platform team. It was revoked."
    owner:
      description: C(owner) of the entry in O(allowed).
      type: str
    reason:
      description: C(reason) of the entry in O(allowed).
      type: str
    created_at:
      description: Time at which the key was created.
      type: str
    last_used_at:
      description: Time at which the key was last used. V(null) if it was never used.
      type: str
    outcome:
      description:
        - V(revoked) if the task has revoked the key, or would have in check mode.
        - V(kept) if the key is not revoked although its kind is in O(revoke_kinds). C(kept_because) is the reason.
        - V(gone) if somebody else has revoked the key in the meantime, or if a V(duplicate) or V(over_limit) ends with the revocation of other keys.
        - V(reported) otherwise.
      type: str
      sample: revoked
    kept_because:
      description: Why the key is not revoked, as a sentence. V(null) unless C(outcome) is V(kept).
      type: str
check_mode:
  description: Whether the task ran in check mode, so that keys with C(outcome=revoked) still exist.
  returned: success
  type: bool
  sample: false
  version_added: 3.0.0
checked:
  description: Kinds of findings that the options check.
  returned: success
  type: list
  elements: str
  sample: [unknown, expired, never_used, duplicate]
summary:
  description: Number of findings by kind.
  returned: success
  type: dict
  sample: {unknown: 2, expired: 1, idle: 0, never_used: 0, duplicate: 0, over_limit: 0, missing: 0}
revoked:
  description: Revocation results, as sent by the service. In check mode, the keys that would be revoked.
  returned: success
  type: list
  elements: dict
left:
  description: Ids of keys that have findings of O(revoke_kinds), and were not revoked. RV(findings) has the reasons.
  returned: success
  type: list
  elements: int
failure:
  description:
    - Machine-readable cause of the failure. C(kind) is V(orphaned_key) when keys that should have been revoked may be active. C(key_ids) lists
      them. The result then contains what was done until the error.
    - R(Kinds of failure, ansible_collections.clouddb.control.docsite.failure_kinds) lists the other kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: orphaned_key
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Optional

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._errors import InvalidOption
from ..module_utils._http.client import Client
from ..module_utils._keys.scope import SCOPE_OPTIONS, scope_from
from ..module_utils._options import integer
from ..module_utils._policy.policy import REVOCABLE_KINDS, Policy, allowed_from
from ..module_utils._policy.revocation import RevocationOptions, apply_policy
from ..module_utils._timestamps import MAX_AGE, duration


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task."""
    scope = scope_from(params)
    policy = Policy(
        allowed_from(params["allowed"]),
        _age(params, "max_age"),
        _age(params, "max_idle"),
        integer(params, "max_keys", 1),
        timedelta(seconds=duration(params, "grace")),
    )
    max_revocations = integer(params, "max_revocations", 1)
    options = RevocationOptions(params["revoke_kinds"], max_revocations, params["own_key"])
    if not options.kinds:
        raise InvalidOption("revoke_kinds", "must not be empty. Set action: report to revoke no keys.")
    if params["action"] == "report":
        return apply_policy(client, scope, policy, None, check_mode)
    if options.own_key is None:
        raise InvalidOption(
            "own_key", "is required with action: revoke. Set it to the id or the name of the task's own key."
        )
    return apply_policy(client, scope, policy, options, check_mode)


def _age(params: Mapping[str, Any], option: str) -> Optional[timedelta]:
    return None if params[option] is None else timedelta(seconds=duration(params, option, zero=False, largest=MAX_AGE))


def main() -> None:
    ControlModule(
        argument_spec={
            "allowed": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "name": {"type": "str", "required": True},
                    "max_keys": {"type": "int", "no_log": False},
                    "owner": {"type": "str"},
                    "reason": {"type": "str"},
                },
            },
            "max_age": {"type": "raw"},
            "max_idle": {"type": "raw"},
            "max_keys": {"type": "int", "no_log": False},
            "action": {"type": "str", "choices": ["report", "revoke"], "default": "report"},
            **SCOPE_OPTIONS,
            "own_key": {"type": "str", "no_log": False},
            "revoke_kinds": {
                "type": "list",
                "elements": "str",
                "choices": list(REVOCABLE_KINDS),
                "default": ["unknown", "expired", "idle"],
            },
            "max_revocations": {"type": "int", "default": 10},
            "grace": {"type": "raw", "default": "1h"},
        },
    ).run(run)


if __name__ == "__main__":
    main()
