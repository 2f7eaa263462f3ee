# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role does with its variables, with other inventories and when something fails: keys, files, messages."""

from __future__ import annotations

import stat
from typing import Any

import pytest
from account import FOLDER, HOSTS, Account, Run
from invariants import lockouts, secret_files, secrets, unrepaired, violations
from scenarios import PLAIN, Scenario

CHECK = Scenario("--check", arguments=("--check",))
# The variable ansible_check_mode does not show this keyword.
CHECK_BY_PLAY = Scenario("check_mode on the play", play={"check_mode": True})
NO_CHECK_BY_PLAY = Scenario("--check, check_mode: false", play={"check_mode": False}, arguments=("--check",))
REJECT = str(FOLDER / "hooks" / "reject.yml")
# The application reads its key when it is reloaded.
RELOAD = [
    {
        "name": "Check that the application's key is accepted",
        "ansible.builtin.uri": {
            "url": "{{ lookup('ansible.builtin.env', 'CLOUDDB_BASE_URL') }}/projects",
            "headers": {"Authorization": "Bearer {{ lookup('ansible.builtin.file', application) }}"},
        },
        "no_log": True,
        "listen": "Reload the application",
    },
    {
        "name": "Read the key",
        "ansible.builtin.copy": {"src": "{{ api_key_rotation_dest }}", "dest": "{{ application }}", "mode": "0600"},
        "listen": "Reload the application",
    },
    {
        "name": "Start the application",
        "ansible.builtin.fail": {"msg": "it does not start"},
        "when": "inventory_hostname in failing and (fails_always or lookup('ansible.builtin.file', application) != previous)",
        "listen": "Reload the application",
    },
]


def ids(account: Account) -> list[int]:
    """The ids of the active keys, oldest first."""
    return [key["id"] for key in account.keys()]


def succeeded(run: Run) -> Run:
    assert run.status == 0, run.end()
    return run


def failed(run: Run, *messages: str) -> Run:
    assert run.status != 0, run.end()
    for message in messages:
        assert message in run.messages(), run.end()
    return run


@pytest.mark.parametrize(("state", "scenario"), [("empty", CHECK), ("rotated", CHECK_BY_PLAY)])
def test_check_mode_changes_nothing(account: Account, state: str, scenario: Scenario) -> None:
    before = account.restore(state)

    run = succeeded(account.run(scenario))

    assert run.result()["changed"] and run.result()["api_key"]["id"] is None
    assert account.observe() == before


def test_play_that_is_never_in_check_mode(account: Account) -> None:
    [older] = account.restore("rotated").active

    run = succeeded(account.run(NO_CHECK_BY_PLAY))

    assert [key["id"] for key in run.result()["revoked"]] == [older]
    assert ids(account) == [run.result()["api_key"]["id"]]


def test_interrupted_grace_period(account: Account) -> None:
    [older] = account.restore("rotated").active
    pause = {"step": ["Wait until hosts use the new key", 1], "what": "killed"}

    account.run(event=pause, api_key_rotation_grace_period=60)
    during, files = ids(account), account.files()
    account.sandbox.advance(60)
    run = succeeded(account.run(api_key_rotation_max_age="30d", api_key_rotation_grace_period=60))

    assert during[0] == older and len(during) == 2
    assert ids(account) == [run.result()["api_key"]["id"]] == during[1:]
    assert "Pausing" not in run.output, "The grace period is over."
    assert secret_files(account.files()) == secret_files(files)


def test_lost_response_to_the_creation(account: Account) -> None:
    before = account.restore("rotated")
    account.sandbox.fault("lost_answer", method="POST", path="/api_keys")

    failed(account.run(), "No new key was deployed", "got no usable response", "is new")
    after = account.observe()
    run = succeeded(account.run(api_key_rotation_max_age="30d"))

    assert after.files == before.files
    assert after.active[:-1] == before.active
    # No record shows that nobody needs the orphaned key.
    assert (run.result()["changed"], run.result()["left"]) == (False, [after.active[-1]])
    assert ids(account) == list(after.active)


def test_failed_deployment_on_one_host(account: Account) -> None:
    before = account.restore("rotated", tasks=True)
    tasks = [*account.variables(tasks=True)["api_key_rotation_deploy_tasks"], REJECT]

    run = account.run(PLAIN, "-vvv", tasks=True, api_key_rotation_deploy_tasks=tasks)

    failed(run, "web2: ", "'Reject the key on one host' failed", "was revoked")
    after = account.observe()
    assert (after.active, after.accepted) == (before.active, before.accepted)
    assert secret_files(after.files) == secret_files(before.files)


def test_grace_period_before_the_new_key_is_revoked(account: Account) -> None:
    """An application may have read it before it was rolled back."""
    before = account.restore("rotated", tasks=True)
    tasks = [*account.variables(tasks=True)["api_key_rotation_deploy_tasks"], REJECT]
    pause = {"step": ["Wait until hosts use the previous key", 1], "what": "killed"}

    account.run(tasks=True, event=pause, api_key_rotation_deploy_tasks=tasks, api_key_rotation_grace_period=60)

    after = account.observe()
    assert secret_files(after.files) == secret_files(before.files)
    assert after.active[:-1] == before.active


def reloading(account: Account, play: dict[str, Any], **variables: Any) -> tuple[Run, list[str]]:
    """A run whose deployment and rollback tasks notify a handler, and the secrets that the applications use in the end."""
    account.restore("rotated")
    [previous] = {(account.files_folder / f"{host}.key").read_text() for host in HOSTS}
    applications = [account.files_folder / f"{host}.application" for host in HOSTS]
    for application in applications:
        application.write_text(previous)
    files = [str(FOLDER / "hooks" / "notify.yml")]
    run = account.run(
        Scenario("handlers", play={**play, "handlers": RELOAD}),
        **{"failing": [], "fails_always": False, **variables},
        api_key_rotation_deploy_tasks=files,
        api_key_rotation_rollback_tasks=files,
        application=f"{account.files_folder}/{{{{ inventory_hostname }}}}.application",
        previous=previous,
    )
    return run, [application.read_text() for application in applications]


def test_handlers_run_while_the_older_key_is_valid(account: Account) -> None:
    run, used = reloading(account, {})

    assert (
        [account.key_id(secret) for secret in used]
        == [succeeded(run).result()["api_key"]["id"]] * 3
        == ids(account) * 3
    )


@pytest.mark.parametrize("play", [{}, {"any_errors_fatal": True}], ids=["rescue", "any_errors_fatal"])
def test_failed_handler_is_rolled_back(account: Account, play: dict[str, Any]) -> None:
    run, used = reloading(account, play, failing=["web2"])

    failed(run, "web2: ", "'Start the application' failed", "was revoked")
    files = [(account.files_folder / f"{host}.key").read_text() for host in HOSTS]
    assert [account.key_id(secret) for secret in [*used, *files]] == ids(account) * 6


def test_failed_handler_of_the_rollback_keeps_the_new_key(account: Account) -> None:
    run, used = reloading(account, {}, failing=["web2"], fails_always=True)

    _older, newest = ids(account)
    failed(run, f"Key {newest} is still valid, because it may be in use on web2.")
    assert all(map(account.key_id, used))


def test_deployment_by_tasks_only(account: Account) -> None:
    account.restore("empty", tasks=True)
    only_tasks = {"api_key_rotation_dest": "", "api_key_rotation_hosts": list(HOSTS)}
    vaults = [account.files_folder / f"{host}.vault" for host in HOSTS]

    def held() -> set[int]:
        return {int(vault.read_text().split()[0]) for vault in vaults}

    first = succeeded(account.run(tasks=True, **only_tasks))
    assert ids(account) == [first.result()["api_key"]["id"]] and held() == set(ids(account))
    again = succeeded(account.run(tasks=True, api_key_rotation_max_age="30d", **only_tasks))
    assert not again.result()["changed"]

    # Without a record, nothing shows which key the role authenticates with.
    second = succeeded(account.run(tasks=True, **only_tasks))
    assert (second.result()["revoked"], second.result()["left"]) == ([], [first.result()["api_key"]["id"]])
    assert held() == {second.result()["api_key"]["id"]} and len(ids(account)) == 2
    older = ids(account)
    third = succeeded(account.run(tasks=True, **only_tasks, api_key_rotation_own_key="sandbox"))
    assert ([key["id"] for key in third.result()["revoked"]], third.result()["left"]) == (older, [])
    assert ids(account) == [third.result()["api_key"]["id"]]


@pytest.mark.parametrize(
    ("step", "rejected"),
    [
        ("Write the key", False),
        ("Store the key in the vault", False),
        ("Restore the previous key in the vault", True),
        # The run is not killed, but fails, and so does its rollback.
        ("", True),
    ],
)
def test_keys_that_a_vault_has_held_are_kept(account: Account, step: str, rejected: bool) -> None:
    """Applications may have read them, even if the run that stored them was killed or failed."""
    account.restore("empty", tasks=True)
    variables = account.variables(tasks=True)
    only_tasks = {
        "api_key_rotation_dest": "",
        "api_key_rotation_record": f"{account.files_folder}/.{{{{ inventory_hostname }}}}.rotation",
        "api_key_rotation_keep": 1,
    }
    failing = {**only_tasks, "api_key_rotation_deploy_tasks": [*variables["api_key_rotation_deploy_tasks"], REJECT]}
    if not step:
        failing["api_key_rotation_rollback_tasks"] = [REJECT]
    succeeded(account.run(tasks=True, **only_tasks))
    first = ids(account)

    event = {"step": [step, 1], "what": "killed_after"} if step else None
    interrupted = account.run(tasks=True, event=event, **(failing if rejected else only_tasks))
    run = account.run(tasks=True, api_key_rotation_max_age="30d", **only_tasks)

    assert interrupted.status != 0 and succeeded(run)
    held = {secret for line in [*interrupted.trace, *run.trace] for secret in secrets(line.get("files", {}))}
    assert all(map(account.key_id, held)), run.end()
    assert ids(account)[:1] == first
    # Those that no host holds any more are revoked once they were replaced twice.
    last = succeeded(account.run(tasks=True, **only_tasks))
    assert ids(account)[1:] == [last.result()["api_key"]["id"]]


def test_extra_variable_instead_of_the_secret(account: Account) -> None:
    before = account.restore("rotated", tasks=True)

    run = account.run(PLAIN, "--extra-vars", "api_key_rotation_key=not-a-key", tasks=True)

    failed(run, "api_key_rotation_key: set by the role for the task files.")
    assert account.observe() == before


def test_condition_that_excludes_the_first_host(account: Account) -> None:
    before = account.restore("rotated")

    run = account.run(Scenario("when", role="import_role", task={"when": "inventory_hostname != 'web1'"}))

    failed(run, "web1 did not report in this run")
    assert account.observe() == before


def test_former_names_of_variables(account: Account) -> None:
    account.restore("rotated")
    account.hosts = ("web1", "web2")

    failed(account.run(api_key_rotation_consumers=["web1", "web4"]), "web3 and web4 did not report")
    run = succeeded(account.run(api_key_rotation_consumers=["web1"], api_key_rotation_former_consumers=["web3"]))

    assert ids(account) == [run.result()["api_key"]["id"]]
    assert all(f"api_key_rotation_{name} is now" in run.output for name in ("consumers", "former_consumers"))


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        (
            {"maxage": "1d"},
            "api_key_rotation_maxage: there is no such variable. Did you mean api_key_rotation_max_age?",
        ),
        ({"name": "deploy"}, "api_key_rotation_name: must contain {timestamp}"),
        # A vault that these tasks wrote to would keep the key that is revoked.
        ({"hand_over_tasks": []}, "api_key_rotation_hand_over_tasks: removed. Use"),
        ({"take_back_tasks": []}, "api_key_rotation_take_back_tasks: removed. Use"),
        ({"deploy_tasks": ["missing.yml"]}, "missing.yml: not found on the controller."),
        ({"keep": "{{ 1 if inventory_hostname == 'web2' else 0 }}"}, "api_key_rotation_keep (on web2)"),
        ({"mode": "u="}, "The owner could not read a file with mode 0000"),
        ({"owner": "no such user", "max_age": "30d"}, "failed to look up user no such user"),
    ],
)
def test_mistake_fails_before_anything_is_changed(account: Account, variables: dict[str, Any], problem: str) -> None:
    before, others = account.restore("rotated"), account.other_keys()

    failed(account.run(**{f"api_key_rotation_{name}": value for name, value in variables.items()}), problem)

    assert (account.observe(), account.other_keys()) == (before, others)
    assert stat.S_IMODE((account.files_folder / "web1.key").stat().st_mode) == 0o600


# Other inventories, and other uses of the role


def complete(account: Account) -> bool:
    state = account.observe()
    held = {state.accepted.get(state.files.get(f"{host}.key", "")) for host in account.hosts}
    return len(state.active) == 1 and held == {state.newest}


@pytest.mark.parametrize("state", ["empty", "rotated"])
def test_two_plays_for_different_hosts(account: Account, state: str) -> None:
    before = account.restore(state)
    [play] = PLAIN.playbook(account.variables(tasks=False))

    run = account.play([{**play, "hosts": "web1,web2"}, {**play, "hosts": "web3"}])

    if state == "rotated":
        assert violations(account, run, before) == [], run.end()
    else:
        # Each play has hosts, and therefore a key, of its own.
        after = account.observe()
        assert not lockouts(run, before, after, {"what": ""}), run.end()
        assert run.status == 0 and set(secrets(after.files)) == set(after.accepted), run.end()
        assert f"Key {after.active[0]} of this name remains valid, and no record" in run.messages(), run.end()
    # The next undisturbed run completes the rotation.
    repair = account.run(api_key_rotation_max_age="30d")
    assert unrepaired(account, repair) == [], repair.end()


def test_lists_of_hosts_that_are_known_do_not_travel(account: Account) -> None:
    """Each host would return the names of all others. The role and the records agree on what the hosts of the play are."""
    account.restore("empty")
    account.hosts = ("web1", "Web2", "db1")
    runs = [account.run(), account.run()]
    account.hosts = ("web1", "Web2")
    runs.append(account.run(api_key_rotation_max_age="30d"))

    lists = [[line["host_lists"] for line in run.trace if "host_lists" in line] for run in runs]
    assert [run.status for run in runs] == [0, 0, 0], "".join(run.end() for run in runs)
    assert lists == [[], [], [['["Web2", "db1", "web1"]']] * 2]


def test_role_twice_in_a_play(account: Account) -> None:
    before = account.restore("rotated")
    [play] = PLAIN.playbook(account.variables(tasks=False))

    run = account.play([{**play, "tasks": play["tasks"] * 2}])

    assert violations(account, run, before) == [], run.end()
    assert run.status == 0 and complete(account), run.end()


def test_two_keys_in_a_play(account: Account) -> None:
    before = account.restore("rotated")
    [play] = PLAIN.playbook(account.variables(tasks=False))
    other = {
        "api_key_rotation_name": "other-{timestamp}",
        "api_key_rotation_dest": f"{account.files_folder}/{{{{ inventory_hostname }}}}_other.key",
    }
    [task] = play["tasks"]

    run = account.play([{**play, "tasks": [{**task, "vars": other}, task]}])

    assert run.status == 0 and complete(account), run.end()
    [key] = [key for key in account.sandbox.api("GET", "/api_keys") if key["name"].startswith("other-")]
    held = {account.key_id((account.files_folder / f"{host}_other.key").read_text()) for host in account.hosts}
    assert held == {key["id"]}
    assert before.newest not in account.observe().active
