# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploys a key to a host, and rolls it back, so that the host always has a valid key.

Several rotations may run at once. Each step holds the lock of the host, and changes the file only if it still holds what
this run has found or written there. After C(commit), this run never writes another secret, so that older keys may be
revoked. Until then the record names what a rollback may restore, so that nobody revokes it. Keeps P2, P5, P6 and P7.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._files.secret_file import FileAttributes, SecretFile
from .._http.client import Client
from .._keys.keys import MAX_REJECTIONS, is_accepted
from .._keys.scope import KeyScope
from .confirmation import Confirmation, Run
from .record import (
    COMMITTED,
    DEPLOYED,
    DEPLOYING,
    NO_RECORD,
    KnownKey,
    Previous,
    Record,
    checksum,
    checksum_of,
    read_record,
)

# A service that spreads a new key over several machines may take some seconds to accept it.
MAX_REJECTIONS_OF_NEW_KEY = 5


class NewKey(NamedTuple):
    """A key to deploy, the hosts that use it, and the older keys, by id."""

    id: int
    secret: str
    hosts: list[str]
    older_keys: dict[int, KnownKey]

    def __repr__(self) -> str:
        return f"NewKey({self.id}, ...)"  # without the secret


class Found(NamedTuple):
    """What the host holds: the secret in its file, and its record."""

    secret: str | None
    record: Record | None

    @property
    def fingerprint(self) -> str:
        """A checksum that differs whenever the secret or the record does."""
        return checksum(f"{self.secret}\n{self.record and self.record.as_text()}")[:32]

    def __repr__(self) -> str:
        return "Found(...)"  # without the secret


class Host(NamedTuple):
    """A host that uses the key. Its C(file) holds the secret, its C(record) what was deployed; it may have neither.

    C(run) is that of the role, for its confirmation.
    """

    name: str
    run: Run
    file: SecretFile | None
    record: SecretFile | None
    scope: KeyScope

    @contextmanager
    def held(self) -> Iterator[Found]:
        """Lock the host, and yield what it holds. Raises SecretFileError and InvalidOption."""
        for file in filter(None, (self.file, self.record)):
            file.check()
        if self.file and self.record and self.file.path == self.record.path:
            raise InvalidOption("record", f"{self.record.path} is the path of dest. Set another one.")
        locked = self.file or self.record
        with locked.held() if locked else nullcontext():
            yield self.find()

    def find(self) -> Found:
        """What the host holds. Raises SecretFileError.

        A record of another file is none: nobody knows who still reads that file.
        """
        record = read_record(self.record) if self.record else None
        return Found(
            self.file.read_key() if self.file else None, record if record and record.is_about(self.path) else None
        )

    @property
    def path(self) -> str | None:
        """The path of the file, if there is one."""
        return self.file.path if self.file else None

    def own_record(self, key: NewKey, found: Found) -> Record | None:
        """The record that was written for the key; None if another run or a host with the same file replaced it or the key."""
        record = found.record
        if record is None or (record.key_id, record.host) != (key.id, self.name):
            return None
        return record if self.file is None or found.secret == key.secret else None

    def write_record(self, record: Record) -> None:
        """Replace the record, if the host has one; a new one is readable by its owner only. Raises SecretFileError."""
        if self.record:
            with self.record.replacement() as write:
                write(record.as_text())

    def write_secret(self, secret: str, attributes: FileAttributes | None = None) -> None:
        """Replace the secret in the file, if the host has one, with C(attributes) or else those of the options."""
        if self.file:
            with self.file.replacement(attributes) as write:
                write(secret)

    def confirmation(self, client: Client, deployed: NewKey | None = None) -> Confirmation:
        """What the host holds now. The host must be held.

        C(deployed) is the key that this run has deployed; a host without a file can't show it otherwise.
        """
        found = self.find()
        record = found.record or NO_RECORD
        # Another host with this file, or to which this name leads, can't confirm for this one.
        is_own = record.sha256 == checksum_of(found.secret) and record.host in (None, self.name)
        key_id = record.key_id if is_own else None
        secret, state = found.secret, record.state
        if deployed and not self.record:
            key_id, state = deployed.id, DEPLOYED
        if deployed and not self.file:
            secret = deployed.secret
        accepted, checked_at = _check_secret(client, self.scope, secret) if secret else (None, None)
        return Confirmation(
            host=self.name,
            run=self.run.id,
            variables=self.run.variables,
            has_file=self.file is not None,
            has_record=self.record is not None,
            sha256=checksum_of(found.secret),
            accepted=accepted,
            checked_at=checked_at,
            key_id=key_id,
            state=state,
            deployed_at=record.deployed_at,
            return_sha256=record.previous.sha256 if record.previous else None,
            known_keys=record.keys,
            fingerprint=found.fingerprint,
            rolled_back=record.rolled_back,
        )


def _check_secret(
    client: Client, scope: KeyScope, secret: str, max_rejections: int = MAX_REJECTIONS
) -> tuple[bool, str]:
    """Whether the service accepts the secret, and the time of that by its clock."""
    own_client = client.with_api_key(secret)
    accepted = is_accepted(own_client, scope, max_rejections)
    return accepted, own_client.service_now().isoformat()


def inspect(client: Client, host: Host) -> tuple[bool, Confirmation]:
    """Check that the host's files can be replaced, with owner, group and mode, and set those of the secret's file.

    Returns whether that changed it, and what the host holds. Raises what a Host and a Client raise.
    """
    with host.held() as found:
        for file in filter(None, (host.file, host.record)):
            with file.replacement(check_space=True):
                pass
        changed = host.file.set_attributes(host.file.path) if host.file and found.secret is not None else False
        return changed, host.confirmation(client)


def deploy(client: Client, host: Host, key: NewKey, fingerprint: str) -> dict[str, Any]:
    """Write the key to the host's file. Returns C(previous), the secret that it held before, None if there was none.

    C(fingerprint) is that of the confirmation by which the rotation was planned. Raises ClouddbError when the host has
    changed since, or the service does not accept the key; what the host holds is unchanged then.
    """
    with host.held() as found:
        if host.own_record(key, found):
            # The connection was lost, and Ansible has run the task again.
            return {"changed": False, "previous": None}
        if found.fingerprint != fingerprint:
            raise ClouddbError(
                "deployment_refused",
                f"The file or the record of {host.name} has changed since this run inspected it, by another rotation, by a "
                "host with the same file or by hand. Nothing was written there. Run the role again, and only once at a time.",
            )
        _require_accepted(client, host, key)
        own = found.record.keys if found.record else {}
        older = {
            other: old._replace(confirmed=other in own and own[other].confirmed)
            for other, old in key.older_keys.items()
        }
        known_keys = {**older, key.id: KnownKey(key.hosts, checksum(key.secret))}
        sha256 = checksum(key.secret) if host.file else None
        previous = _to_restore(host, found)
        host.write_record(Record(key.id, sha256, DEPLOYING, None, previous, known_keys, host=host.name, path=host.path))
        host.write_secret(key.secret)
        return {"changed": True, "previous": found.secret}


def confirm(client: Client, host: Host, key: NewKey) -> Confirmation:
    """Record that the deployment is complete: the host holds the key, and the service accepts it from there.

    To be called after all tasks that deploy the key. Raises ClouddbError.
    """
    with host.held() as found:
        record = host.own_record(key, found)
        if host.record and not record:
            raise ClouddbError(
                "deployment_refused",
                f"{host.name} no longer holds the new key {key.id}, because another rotation or somebody else has changed its "
                "file. Run the role again, and only once at a time.",
            )
        deployed_at = _require_accepted(client, host, key)
        if record:
            record = record.with_confirmed(key.id, True)
            host.write_record(record._replace(state=DEPLOYED, deployed_at=deployed_at))
        return host.confirmation(client, key)


def commit(client: Client, host: Host, key_id: int, key: NewKey | None) -> Confirmation:
    """Exclude that key C(key_id) is rolled back, if the host holds it and the service accepts it.

    C(key) is the key if this run has deployed it. The confirmation says what the host holds, whatever that is.
    """
    with host.held() as found:
        confirmation = host.confirmation(client, key)
        if not confirmation.has_deployed(key_id):
            return confirmation
        if found.record:
            host.write_record(found.record._replace(state=COMMITTED, previous=None))
        return confirmation._replace(state=COMMITTED, return_sha256=None)


def roll_back(client: Client, host: Host, key: NewKey, secret: str | None) -> tuple[bool, Confirmation]:
    """Restore the previous secret, if the file still holds the new one and the service still accepts the previous one.

    C(secret) is the previous one, which deploy() returned. Returns whether it was restored, and what the host then holds.
    """
    with host.held() as found:
        record = host.own_record(key, found)
        if record is None:
            # This also changes the fingerprint, by which this run could deploy the key later.
            kept = found.record or Record(key.id, None, DEPLOYING, None, None, {}, path=host.path)
            host.write_record(kept.with_confirmed(key.id, False)._replace(rolled_back=key.id))
            return False, host.confirmation(client)._replace(rolled_back=key.id)
        if record.state == COMMITTED or not _restore_file(client, host, record.previous, secret):
            return False, host.confirmation(client)
        host.write_record(_previous_record(record).with_confirmed(key.id, False)._replace(rolled_back=key.id))
        return True, host.confirmation(client)


def _restore_file(client: Client, host: Host, previous: Previous | None, secret: str | None) -> bool:
    """Restore the file and its C(secret), or remove it if there was none; returns whether that was done."""
    if host.file is None:
        return True
    if previous is None:
        # Another run has deployed its key over this one, and rolled it back. What was there before is no longer known.
        return False
    if previous.sha256 is None:
        host.file.remove()
        return True
    if not secret or checksum(secret) != previous.sha256 or not is_accepted(client.with_api_key(secret), host.scope):
        return False
    host.write_secret(secret, FileAttributes(**previous.attributes) if previous.attributes else None)
    return True


def _previous_record(record: Record) -> Record:
    """The record of the previous deployment. One that is not known is recorded as incomplete."""
    old = record.previous
    if old is None or old.key_id is None or old.state is None:
        return record._replace(state=DEPLOYING, previous=None)
    return record._replace(
        key_id=old.key_id, sha256=old.sha256, state=old.state, deployed_at=old.deployed_at, previous=None
    )


def _to_restore(host: Host, found: Found) -> Previous:
    """What a rollback is to restore: the file as it is, and what is known about the key in it."""
    sha256 = checksum_of(found.secret)
    attributes = host.file.attributes()._asdict() if host.file and found.secret is not None else None
    record = found.record
    # An interrupted deployment has not written its key if the file still holds what was there before.
    for known in (record, record and record.previous):
        if known and known.sha256 == sha256:
            return Previous(sha256, attributes, known.key_id, known.state, known.deployed_at)
    return Previous(sha256, attributes, None, None, None)


def _require_accepted(client: Client, host: Host, key: NewKey) -> str:
    """The time by the service's clock at which it accepted the key from here. Raises ClouddbError."""
    accepted, checked_at = _check_secret(client, host.scope, key.secret, MAX_REJECTIONS_OF_NEW_KEY)
    if not accepted:
        raise ClouddbError(
            "deployment_refused",
            f"The service does not accept the new key {key.id} from {host.name}. It may have been revoked by another "
            "rotation. Run the role again, and only once at a time.",
        )
    return checked_at
