# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploys a key to one of its consumers, and rolls it back, so that the consumer has a valid key at any time.

Several rotations may run at once. Each step holds the lock of the consumer, and changes the file only if it still holds
what this run has found or written there. After C(commit), this run never writes another secret, so that older keys may
be revoked. Until then the record names what a roll-back may restore, so that nobody revokes it. Keeps P2, P5, P6 and P7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from .._errors import ClouddbError, InvalidOption
from .._files.secret_file import SECRET_SIZE, FileAttributes, SecretFile
from .._http.client import Client
from .._keys.api import is_valid_secret
from .evidence import Evidence, Run
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
    keys_from_json,
    read_record,
    write_record,
)

# A service that spreads a new key over several machines may take some seconds to accept it.
REJECTIONS_OF_NEW_KEY = 5
# In bytes. That there is space for the next record is checked with a file of this size.
RECORD_SIZE = 16384


class DeploymentRefused(ClouddbError):
    """The key is not deployed to this consumer; what the consumer holds is unchanged."""

    kind = "deployment_refused"


class NewKey(NamedTuple):
    """A key to deploy, its consumers, and the older keys, by id."""

    id: int
    secret: str
    consumers: list[str]
    older_keys: dict[int, KnownKey]

    def known_keys(self) -> dict[int, KnownKey]:
        """All keys that consumers may hold."""
        return {**self.older_keys, self.id: KnownKey(self.consumers, checksum(self.secret))}

    def __repr__(self) -> str:
        return f"NewKey({self.id}, ...)"  # without the secret


def planned_from(params: Mapping[str, Any]) -> tuple[list[str], dict[int, KnownKey]]:
    """The consumers and the older keys that this run was planned for; none if it was not. Raises InvalidOption."""
    plan = params["plan"]
    if plan is None:
        return [], {}
    try:
        return [str(name) for name in plan["consumers"]], keys_from_json(plan["older_keys"])
    except (TypeError, ValueError, LookupError, AttributeError):
        raise InvalidOption("plan", "must be what clouddb.control.api_key_rotation returned") from None


def new_key_from(params: Mapping[str, Any]) -> NewKey | None:
    """The key that a module's options name, None if they name none. Raises InvalidOption."""
    return NewKey(params["key_id"], params["key"], *planned_from(params)) if params["key"] else None


class Found(NamedTuple):
    """What the consumer holds: the secret in its file, and its record."""

    secret: str | None
    record: Record | None

    def deployed(self, key: NewKey, consumer: Consumer) -> Record | None:
        """The record of the key, if this run, and no later one, has written it; a host with the same file has not."""
        record = self.record
        if record is None or (record.key_id, record.consumer) != (key.id, consumer.name):
            return None
        return record if consumer.file is None or self.secret == key.secret else None

    @property
    def fingerprint(self) -> str:
        """A checksum that differs whenever the secret or the record does."""
        return checksum(f"{self.secret}\n{self.record and self.record.as_text()}")[:32]

    def __repr__(self) -> str:
        return "Found(...)"  # without the secret


class Consumer(NamedTuple):
    """A host that uses the key. Its C(file) holds the secret, its C(record) what was deployed; it may have neither.

    C(run) is that of the role, for its evidence. In check mode nothing is locked or written.
    """

    name: str
    run: Run
    file: SecretFile | None
    record: SecretFile | None
    check_mode: bool = False

    @contextmanager
    def held(self) -> Iterator[Found]:
        """Lock the consumer, and yield what it holds. Raises SecretFileError and InvalidOption."""
        for file in filter(None, (self.file, self.record)):
            file.check()
        if self.file and self.record and self.file.path == self.record.path:
            raise InvalidOption("record", f"{self.record.path} is the path of dest. Set another one.")
        locked = self.file or self.record
        with nullcontext() if locked is None or self.check_mode else locked.held():
            yield self.find()

    def find(self) -> Found:
        """What the consumer holds. Raises SecretFileError."""
        return Found(self.file.read() if self.file else None, read_record(self.record) if self.record else None)

    def write_record(self, record: Record) -> None:
        """Replace the record, if the consumer has one. Raises SecretFileError."""
        if self.record and not self.check_mode:
            write_record(self.record, record)

    def write_secret(self, secret: str, attributes: FileAttributes | None = None) -> None:
        """Replace the secret in the file, if the consumer has one. Raises SecretFileError.

        C(attributes) are its owner, group and mode, instead of those that the options say.
        """
        if self.file and not self.check_mode:
            with self.file.replacement(attributes) as write:
                write(secret)

    def remove_secret(self) -> None:
        """Remove the file, if the consumer has one. Raises SecretFileError."""
        if self.file and not self.check_mode:
            self.file.remove()

    def evidence(self, client: Client, step: str, deployed: NewKey | None = None) -> Evidence:
        """The evidence of what the consumer holds now. The consumer must be held.

        C(deployed) is the key that this run has deployed; a consumer without a file can't show it otherwise.
        """
        found = self.find()
        record = found.record or NO_RECORD
        key_id = record.key_id if record.sha256 == checksum_of(found.secret) else None
        state = record.state
        if deployed and not self.record:
            key_id, state = deployed.id, DEPLOYED
        secret = found.secret if self.file or deployed is None else deployed.secret
        accepted, checked_at = _check(client, secret)
        return Evidence(
            consumer=self.name,
            run=self.run.id,
            variables=self.run.variables,
            step=step,
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
            withdrawn=record.withdrawn,
        )


def _check(client: Client, secret: str | None) -> tuple[bool | None, str | None]:
    """Whether the service accepts the secret, and the time of that by its clock; None if there is no secret."""
    if not secret:
        return None, None
    own_client = client.with_api_key(secret)
    accepted = is_valid_secret(own_client)
    return accepted, own_client.service_now().isoformat()


def inspect(client: Client, consumer: Consumer) -> Evidence:
    """What the consumer holds, after a check that its files can be replaced, with owner, group and mode; changes nothing.

    Raises what a Consumer and a Client raise.
    """
    with consumer.held():
        for file, size in ((consumer.file, SECRET_SIZE), (consumer.record, RECORD_SIZE)):
            if file:
                with nullcontext() if consumer.check_mode else file.replacement(size=size):
                    pass
        places = [place for file in (consumer.file, consumer.record) if file and (place := file.place())]
        return consumer.evidence(client, "inspect")._replace(places=places)


def deploy(client: Client, consumer: Consumer, key: NewKey, fingerprint: str) -> dict[str, Any]:
    """Write the key to the consumer's file. Returns C(previous), the secret that it held before, None if there was none.

    C(fingerprint) is that of the evidence by which the rotation was planned. Raises DeploymentRefused when the consumer
    has changed since, or the service does not accept the key; what the consumer holds is unchanged then.
    """
    if consumer.name not in key.consumers:
        raise DeploymentRefused(f"{consumer.name} is none of the consumers that this run was planned for.")
    with consumer.held() as found:
        if found.deployed(key, consumer):
            # The connection was lost, and Ansible has run the task again.
            return {"changed": False, "previous": None}
        if found.fingerprint != fingerprint:
            raise DeploymentRefused(
                f"What {consumer.name} holds has changed since this run inspected it, by another rotation, by a host with the "
                "same file or by hand. Nothing was written there. Run the role again, and only once at a time."
            )
        _require_accepted(client, consumer, key)
        sha256 = checksum(key.secret) if consumer.file else None
        previous = _previous(consumer, found)
        consumer.write_record(
            Record(key.id, sha256, DEPLOYING, None, previous, key.known_keys(), consumer=consumer.name)
        )
        consumer.write_secret(key.secret)
        return {"changed": True, "previous": found.secret}


def confirm(client: Client, consumer: Consumer, key: NewKey) -> Evidence:
    """Record that the deployment is complete: the consumer holds the key, and the service accepts it from there.

    To be called after all tasks that deploy the key. Raises DeploymentRefused.
    """
    with consumer.held() as found:
        record = found.deployed(key, consumer)
        if consumer.record and not record:
            raise DeploymentRefused(
                f"{consumer.name} does not hold the new key {key.id} any more. Another rotation or somebody else has "
                "changed it. Run the role again, and only once at a time."
            )
        deployed_at = _require_accepted(client, consumer, key)
        if record:
            consumer.write_record(record._replace(state=DEPLOYED, deployed_at=deployed_at))
        return consumer.evidence(client, "confirm", key)


def commit(client: Client, consumer: Consumer, key_id: int, key: NewKey | None) -> Evidence:
    """Exclude that key C(key_id) is rolled back, if the consumer holds it and the service accepts it.

    C(key) is the key if this run has deployed it. The evidence says what the consumer holds, whatever that is.
    """
    with consumer.held() as found:
        evidence = consumer.evidence(client, "commit", key)
        if not evidence.has_deployed(key_id):
            return evidence
        if found.record:
            consumer.write_record(found.record._replace(state=COMMITTED, previous=None))
        return evidence._replace(state=COMMITTED, return_sha256=None)


def verify(client: Client, consumer: Consumer, key_id: int) -> Evidence:
    """The evidence that the consumer still holds key C(key_id), after older ones were revoked. Raises DeploymentRefused."""
    with consumer.held():
        evidence = consumer.evidence(client, "verify")
    if not evidence.has_deployed(key_id):
        raise DeploymentRefused(
            f"{consumer.name} does not hold a valid key any more: its file was changed while older keys were revoked. "
            "Run the role again, which deploys a new key."
        )
    return evidence


def restore(
    client: Client, consumer: Consumer, key: NewKey, previous: str | None, fingerprint: str | None = None
) -> tuple[bool, Evidence]:
    """Restore the previous secret, if the file still holds the new one and the service still accepts the previous one.

    C(previous) is what deploy() returned. C(fingerprint) is the one that deploy() got, if it has ended with an error: where
    it has changed nothing, nothing is written, because that could fail for the same reason. Returns whether it was restored,
    and evidence of what the consumer holds in the end, whatever that is.
    """
    with consumer.held() as found:
        record = found.deployed(key, consumer)
        if record is None:
            if found.fingerprint != fingerprint:
                # This also changes the fingerprint, by which this run could deploy the key later.
                consumer.write_record((found.record or _unknown_record(key))._replace(withdrawn=key.id))
            return False, consumer.evidence(client, "roll_back")._replace(withdrawn=key.id)
        if record.state == COMMITTED or not _restore_file(client, consumer, key, record.previous, previous):
            return False, consumer.evidence(client, "roll_back")
        consumer.write_record(_record_before(record)._replace(withdrawn=key.id))
        return True, consumer.evidence(client, "roll_back")


def _unknown_record(key: NewKey) -> Record:
    """The record of a consumer that had none."""
    return Record(key.id, None, DEPLOYING, None, None, {})


def _restore_file(
    client: Client, consumer: Consumer, key: NewKey, before: Previous | None, previous: str | None
) -> bool:
    """Restore the file; returns whether it was restored."""
    if consumer.file is None:
        return True
    if before is None or before.sha256 is None:
        consumer.remove_secret()
        return True
    if previous is None or checksum(previous) != before.sha256 or not is_valid_secret(client.with_api_key(previous)):
        return False
    consumer.write_secret(previous, before.attributes)
    if is_valid_secret(client.with_api_key(previous)):
        return True
    # It was revoked since the check.
    consumer.write_secret(key.secret)
    return False


def _record_before(record: Record) -> Record:
    """The record of the deployment before. One that is not known is recorded as incomplete."""
    before = record.previous
    if before is None or before.key_id is None or before.state is None:
        return record._replace(state=DEPLOYING, previous=None)
    return record._replace(
        key_id=before.key_id, sha256=before.sha256, state=before.state, deployed_at=before.deployed_at, previous=None
    )


def _previous(consumer: Consumer, found: Found) -> Previous:
    """What a roll-back is to restore: the file as it is, and what is known about the key in it."""
    sha256 = checksum_of(found.secret)
    attributes = consumer.file.attributes() if consumer.file and found.secret is not None else None
    record = found.record
    # An interrupted deployment has not written its key if the file still holds what was there before.
    for known in (record, record and record.previous):
        if known and known.sha256 == sha256:
            return Previous(sha256, attributes, known.key_id, known.state, known.deployed_at)
    return Previous(sha256, attributes, None, None, None)


def _require_accepted(client: Client, consumer: Consumer, key: NewKey) -> str:
    """The time by the service's clock at which it accepted the key from here. Raises DeploymentRefused."""
    own_client = client.with_api_key(key.secret)
    if not is_valid_secret(own_client, REJECTIONS_OF_NEW_KEY):
        raise DeploymentRefused(
            f"The service does not accept the new key {key.id} from {consumer.name}. It may have been revoked by another "
            "rotation. Run the role again, and only once at a time."
        )
    return own_client.service_now().isoformat()
