# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The invariants of a rotation, checked by the hosts' files and the API only."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from account import HOSTS, SECRET, Account, Files, Run, State, in_use, secrets


def secret_files(files: Files) -> Files:
    return {name: text for name, text in files.items() if in_use(name)}


def host_of(name: str) -> str:
    return name.split(".")[0]


def violations(
    account: Account,
    run: Run,
    before: State,
    event: dict[str, Any] | None = None,
    hosts: tuple[str, ...] = HOSTS,
    may_succeed: bool = False,
    is_check: bool = False,
) -> list[str]:
    """What a run broke; C(may_succeed) if the playbook itself handles the failure."""
    event = event or {"what": ""}
    after = account.observe()
    found = lockouts(run, before, after, event)

    # In check mode a run says what it would do about such hosts, and succeeds.
    without = set() if is_check else without_newest(account, before, after, hosts)
    # A run cannot know of an edit after it used the host's connection for the last time.
    if event["what"] == "edited" and not used_after_edit(run, event["host"]):
        without = without - {event["host"]}
    if run.status == 0 and without and not may_succeed:
        found.append(f"exit status 0, but {', '.join(sorted(without))} without the newest key")
    # If the API host was lost when it had created a key, nobody can know that there is one.
    unknown = event.get("host") == "localhost" and after.newest not in after.accepted.values()
    unnamed = without - run.named()
    if not event["what"].startswith("killed") and not unknown and unnamed:
        found.append(f"no failure names {', '.join(sorted(unnamed))}, without the newest key")

    if event["what"] == "undisturbed" and run.status:
        for created in set(after.active) - set(before.active):
            if str(created) not in run.messages():
                found.append(f"no message names key {created}, which the failed run created")

    shown = {secret for line in run.trace for secret in secrets(line.get("files", {}))} | set(secrets(after.files))
    outputs = [run.output, *(line["output"] for line in run.trace if "second_rotation" in line)]
    if any(secret in output for secret in shown for output in outputs):
        found.append("a secret is in the output")
    if account.other_keys() != ["deploy-tools", "observer", "sandbox"]:
        found.append(f"other keys: {account.other_keys()}")
    return found


def without_newest(account: Account, before: State, after: State, hosts: tuple[str, ...]) -> set[str]:
    """The hosts that do not have the newest key, in one of their files; none if there is no key."""
    if not after.newest:
        return set()
    names = {name for name in (*before.files, *after.files) if in_use(name)}
    names |= {f"{host}.key" for host in hosts if host in account.hosts}
    held = {name: secrets({name: after.files.get(name, "")}) for name in names}
    return {host_of(name) for name in names if after.newest not in map(after.accepted.get, held[name])}


def lockouts(run: Run, before: State, after: State, event: dict[str, Any]) -> list[str]:
    """Hosts whose file holds a revoked secret, or has lost the secret that it had."""
    found = []
    for name, written in last_written(run, before, after, event).items():
        host, text = host_of(name), after.files.get(name, "")
        held = SECRET.findall(text)
        if any(secret in after.accepted for secret in held):
            continue
        edited = event["what"] == "edited" and event["file"] == name
        if held and not (edited and text == event["content"] and not seen_after_edit(run, host, before)):
            found.append(f"lockout: {name} holds a revoked secret")
        if not held and not edited and before.files.get(name):
            found.append(f"lockout: {name} has no secret any more")
        revoked = set(before.active) - set(after.active)
        if not held and any(before.accepted.get(secret) in revoked for secret in SECRET.findall(written)):
            found.append(f"lockout: the key that the role last wrote to {name} was revoked")
    return found


def last_written(run: Run, before: State, after: State, event: dict[str, Any]) -> Files:
    """The files' contents as the role last wrote them, so without the operator's edit."""
    written = secret_files(before.files)
    seen = dict(written)
    for files in [*(line["files"] for line in run.trace if "files" in line), after.files]:
        for name, text in files.items():
            if in_use(name) and text != seen.get(name):
                seen[name] = text
                if not (event["what"] == "edited" and event["file"] == name and text == (event["content"] or "")):
                    written[name] = text
    return written


def used_after_edit(run: Run, host: str) -> bool:
    """Whether the run used the host's connection after the edit, or ended before the edit."""
    edits = [number for number, line in enumerate(run.trace) if "event" in line]
    return not edits or any(line.get("connected") == host for line in run.trace[edits[0] :])


def seen_after_edit(run: Run, host: str, before: State) -> bool:
    """Whether the run used the host's connection after the edit, and revoked a key only afterwards."""
    seen, edited, revoked = False, False, False
    for line in run.trace:
        if "event" in line:
            edited = True
        if "step" in line:
            revoked = not set(before.active) <= set(line["keys"])
        if edited and revoked:
            return seen
        seen |= edited and line.get("connected") == host
    return seen


def unrepaired(account: Account, run: Run) -> list[str]:
    """What the undisturbed run after one with an event did not repair."""
    state = account.observe()
    found = [] if run.status == 0 else [f"the next run ended with {run.status}"]
    # A key that no host ever had is not the newest one, but is named.
    used = tuple(key for key in state.active if key in state.accepted.values())
    if without := without_newest(account, state, replace(state, active=used), HOSTS):
        found.append(f"after the next run, {', '.join(sorted(without))} without the newest key")
    for key in set(state.active) - {*used[-1:]}:
        if not re.search(rf"\b{key}\b", run.messages()):
            found.append(f"after the next run, key {key} remains and is not named")
    return found
