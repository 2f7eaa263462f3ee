# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No rotation locks a host out, in whatever order its steps run, skip or fail, and however many rotations run at once.

Each run of the role is a set of variables, as Ansible has them, and each rule runs one step of one run with the variables
that it has by then: Ansible's control flow can do no worse. A run that has planned neither inspects nor plans again, because
the role begins another run before it does.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ansible_collections.clouddb.control.plugins.module_utils._errors import ClouddbError
from ansible_collections.clouddb.control.plugins.module_utils._rotation.host_lists import id_of_list
from ansible_collections.clouddb.control.plugins.modules import api_key_deployment, api_key_rotation
from ansible_collections.clouddb.control.tests.unit.support.module_main import defaults_of
from ansible_collections.clouddb.control.tests.unit.support.simulated_account import SimulatedAccount

HOSTS = ("web1", "web2", "web3")
hosts = st.sampled_from(HOSTS)


def rule_of_a_run(**arguments: Any) -> Callable[..., Any]:
    """A rule for one of the runs."""
    run = st.runner().flatmap(lambda machine: st.sampled_from(machine.runs))
    return lambda method: precondition(lambda machine: machine.runs)(rule(run=run, **arguments)(method))


class Run:
    """The variables of one run of the role; C(hosts) are those of its play."""

    def __init__(self, number: int, of_hosts: set[str]):
        self.name = f"run-{number}"
        self.hosts = sorted(of_hosts)
        self.plan: dict[str, Any] = {}
        self.created: tuple[int, str] | None = None
        self.previous: dict[str, str | None] = {}
        # The hosts on which the deployment has ended with an error, and is not repeated.
        self.failed: set[str] = set()
        # By step and host.
        self.confirmations: dict[str, dict[str, dict[str, Any]]] = {"inspect": {}, "commit": {}, "roll_back": {}}

    @property
    def key_id(self) -> int | None:
        """The key that the run has created, or that is in use."""
        return self.created[0] if self.created else (self.plan.get("api_key") or {}).get("id")

    @property
    def new_key(self) -> dict[str, Any]:
        """The options about the key that the run has created."""
        return {"hosts": self.plan["hosts"], "key": self.created[1]} if self.created else {}


class Rotations(RuleBasedStateMachine):
    """Hosts with files, an account, and up to three runs at once."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="clouddb-rotations-")
        self.folder = Path(self._folder.name)
        self.account = SimulatedAccount()
        self.runs: list[Run] = []
        self.started = 0
        # The hosts whose file was changed by hand since a run last wrote or checked it.
        self.edited: set[str] = set()
        # The secrets that runs have written to the hosts, each host's latest last. An application may still use an older one.
        self.held: dict[str, list[str]] = {host: [] for host in HOSTS}
        # Those of them whose deployment was completed.
        self.confirmed: dict[str, set[str]] = {host: set() for host in HOSTS}

    def teardown(self) -> None:
        self._folder.cleanup()

    def secret_of(self, host: str) -> str | None:
        file = self.folder / host
        return file.read_text(encoding="utf-8") if file.exists() else None

    def deployment(self, run: Run, host: str, step: str, **options: Any) -> dict[str, Any]:
        """The result of api_key_deployment on this host; empty if it fails."""
        params = {
            **defaults_of(api_key_deployment),
            "play_hosts_id": id_of_list(run.hosts),
            "step": step,
            "host": host,
            "run": run.name,
            "dest": str(self.folder / host),
            "record": str(self.folder / f".{host}.rotation"),
            "tasks_rolled_back": True,
            **options,
        }
        try:
            result = api_key_deployment.run(params, self.account.client("unused"), False, lambda path: False)
        except ClouddbError:
            return {}
        finally:
            self.note_secret(host)
        if step in run.confirmations:
            run.confirmations[step][host] = result
        if step == "confirm":
            self.confirmed[host].add(options["key"])
        elif step == "roll_back" and result["confirmation"]["rolled_back"] == options["key_id"]:
            self.confirmed[host].discard(options["key"])
        return result

    def note_secret(self, host: str) -> None:
        """Add the secret that the host holds now to those that it has held."""
        secret, held = self.secret_of(host), self.held[host]
        if secret in self.account.secrets.values() and held[-1:] != [secret]:
            self.held[host] = [*(other for other in held if other != secret), str(secret)]

    def rotation(self, run: Run, step: str, **options: Any) -> dict[str, Any]:
        """The result of api_key_rotation; empty if it fails."""
        confirmations = run.confirmations[{"plan": "inspect", "revoke": "commit", "roll_back": "roll_back"}[step]]
        params = {
            **defaults_of(api_key_rotation),
            "step": step,
            "name": "deploy-{timestamp}",
            "run": run.name,
            "confirmations": [result["confirmation"] for result in confirmations.values()],
            "host_lists": [text for result in confirmations.values() for text in result["host_lists"]],
            "play_hosts": run.hosts,
            "max_age": "0",
            **options,
        }
        try:
            return api_key_rotation.run(params, self.account.client(), False)
        except ClouddbError:
            return {}

    @initialize(is_rotated=st.booleans(), steps=st.integers(0, 8))
    def rotate_once(self, is_rotated: bool, steps: int) -> None:
        """Rotate the key, then begin a second run, which is killed after some steps."""
        for until in (7, steps) if is_rotated else ():
            self.begin(set(HOSTS))
            self.run_in_order(self.runs[-1], until, set(), 0)

    def next_run(self, of_hosts: set[str]) -> Run:
        self.started += 1
        return Run(self.started, of_hosts)

    # The steps of a run

    @rule(of_hosts=st.just(set(HOSTS)) | st.sets(hosts, min_size=1))
    def begin(self, of_hosts: set[str]) -> None:
        self.runs = [*self.runs[-2:], self.next_run(of_hosts)]

    @rule_of_a_run(steps=st.integers(1, 8), failing=st.sets(hosts, max_size=1), keep=st.integers(0, 4))
    def run_in_order(self, run: Run, steps: int, failing: set[str], keep: int) -> None:
        """The first steps of a run as the role has them, without the C(failing) host; of the next run if this one has planned."""
        if run.plan:
            place = self.runs.index(run)
            run = self.runs[place] = self.next_run({*run.hosts})
        online = [host for host in run.hosts if host not in failing]
        actions = [
            *(self.inspect, self.plan, self.create, self.deploy, self.confirm, self.commit),
            *(functools.partial(self.revoke, keep=keep), self.revoke_the_new_key),
        ]
        for action in actions[:steps]:
            if action in (self.inspect, self.deploy, self.confirm, self.commit):
                for host in online:
                    action(run, host)
            else:
                action(run)

    @rule_of_a_run(host=hosts)
    def inspect(self, run: Run, host: str) -> None:
        if not run.plan:
            self.deployment(run, host, "inspect")

    @rule_of_a_run()
    def plan(self, run: Run) -> None:
        if not run.plan:
            run.plan = self.rotation(run, "plan")

    @rule_of_a_run()
    def create(self, run: Run) -> None:
        if run.plan and not run.created:
            self.account.clock.elapsed += 1  # so that each key has a name of its own
            run.created = self.account.create(f"deploy-20261121T0915{self.started % 60:02}Z")

    @rule_of_a_run(host=hosts)
    def deploy(self, run: Run, host: str) -> None:
        if run.created and host in run.confirmations["inspect"] and host not in run.failed:
            key_id, key = run.created
            options = {name: run.plan[name] for name in ("hosts", "older_keys", "host_lists")}
            fingerprint = run.confirmations["inspect"][host]["confirmation"]["fingerprint"]
            result = self.deployment(run, host, "deploy", key_id=key_id, key=key, fingerprint=fingerprint, **options)
            if result:
                run.previous[host] = result["previous"]
                self.edited.discard(host)
            else:
                run.failed.add(host)

    @rule_of_a_run(host=hosts)
    def confirm(self, run: Run, host: str) -> None:
        if run.created:
            self.deployment(run, host, "confirm", key_id=run.created[0], key=run.created[1])

    @rule_of_a_run(host=hosts)
    def commit(self, run: Run, host: str) -> None:
        if run.key_id is not None:
            self.deployment(run, host, "commit", key_id=run.key_id, key=run.created and run.created[1])

    @rule_of_a_run(keep=st.integers(0, 4))
    def revoke(self, run: Run, keep: int) -> None:
        if run.key_id is not None:
            active = {secret for secret in self.account.secrets.values() if self.account.is_active(secret)}
            self.rotation(run, "revoke", **run.new_key, key_id=run.key_id, keep=keep)
            for host in HOSTS if keep else ():
                older = [secret for secret in self.held[host] if secret != self.account.secrets[run.key_id]]
                confirmed = [number for number, secret in enumerate(older) if secret in self.confirmed[host]]
                # All later ones are kept as well.
                kept = older[confirmed[-keep] if len(confirmed) >= keep else 0 :]
                revoked = [secret for secret in kept if secret in active and not self.account.is_active(secret)]
                assert not revoked, f"{host} has held {revoked}, which are among {keep} that are kept"

    @rule_of_a_run(host=hosts)
    def roll_back(self, run: Run, host: str) -> None:
        if run.created:
            options = {"key_id": run.created[0], "key": run.created[1], "previous": run.previous.get(host)}
            self.deployment(run, host, "roll_back", **options)

    @rule_of_a_run()
    def revoke_the_new_key(self, run: Run) -> None:
        if run.created:
            self.rotation(run, "roll_back", **run.new_key, key_id=run.created[0])

    # What else happens

    @rule(host=hosts, content=st.sampled_from(["", "garbage"]))
    def edit(self, host: str, content: str) -> None:
        (self.folder / host).write_text(content, encoding="utf-8")
        self.edited.add(host)

    @rule(host=hosts)
    def remove(self, host: str) -> None:
        (self.folder / host).unlink(missing_ok=True)
        self.edited.add(host)

    @rule(host=hosts)
    def remove_record(self, host: str) -> None:
        (self.folder / f".{host}.rotation").unlink(missing_ok=True)

    @rule(seconds=st.sampled_from([1, 3600]))
    def wait(self, seconds: int) -> None:
        self.account.clock.elapsed += seconds

    @invariant()
    def no_host_is_locked_out(self) -> None:
        for host in HOSTS:
            secret = self.secret_of(host)
            if secret is not None and host not in self.edited:
                assert self.account.is_active(secret), f"{host} holds {secret}, which is revoked"


TestRotations = Rotations.TestCase
