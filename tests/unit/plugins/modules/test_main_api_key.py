# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""main() of api_key with dest: file attributes, diff mode and censored output, as AnsibleModule does them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.clouddb.control.plugins.modules import api_key
from ansible_collections.clouddb.control.tests.unit.support.api_key_task import OLD_SECRET, mode_of, one_key
from ansible_collections.clouddb.control.tests.unit.support.module_main import run_main
from ansible_collections.clouddb.control.tests.unit.support.resource_task import writes
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.special_files import access_list, set_access_list

pytestmark = pytest.mark.usefixtures("no_delays")


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "deploy.key"


@pytest.fixture
def options(sandbox: Sandbox, dest: Path) -> dict[str, Any]:
    return {"base_url": sandbox.base_url, "api_key": sandbox.api_key, "name": "deploy", "dest": str(dest)}


def test_file_attributes_are_set_after_the_rename(
    options: dict[str, Any], dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, dict[str, Any]]] = []

    def set_attributes(
        module: basic.AnsibleModule, wanted: dict[str, Any], changed: bool, *args: Any, **kwargs: Any
    ) -> bool:
        given.append((wanted["path"], {name: wanted[name] for name in ("mode", "attributes")}))
        return changed

    monkeypatch.setattr(basic.AnsibleModule, "set_fs_attributes_if_different", set_attributes)
    assert run_main(api_key, {**options, "attributes": "+i"}).success["changed"]
    (temporary, at_first), in_place = given
    assert Path(temporary).parent == dest.parent and temporary != str(dest)
    assert at_first == {"mode": "u=rw,o=", "attributes": None}
    assert in_place == (str(dest), {"mode": "u=rw,o=", "attributes": "+i"})
    assert not run_main(api_key, {**options, "attributes": "+i"}).success["changed"]


@one_key
def test_failure_after_the_replacement_returns_the_new_key(
    sandbox: Sandbox, options: dict[str, Any], dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_attributes = basic.AnsibleModule.set_attributes_if_different

    def unsupported(module: basic.AnsibleModule, path: str, attributes: str | None, *args: Any, **kwargs: Any) -> bool:
        if attributes:
            module.fail_json(path=path, msg="chattr failed", details=f"Operation not supported on {path}")
        return set_attributes(module, path, attributes, *args, **kwargs)

    monkeypatch.setattr(basic.AnsibleModule, "set_attributes_if_different", unsupported)
    [old] = sandbox.keys("deploy")
    dest.write_text(OLD_SECRET)
    ended = run_main(api_key, {**options, "regenerate": "always", "attributes": "+Q"})
    [new] = sandbox.keys("deploy")
    assert ended.failure == {"kind": "secret_file"}
    assert ended.result["changed"]
    assert ended.result["api_key"]["id"] == new["id"]
    assert [key["id"] for key in ended.result["revoked"]] == [old["id"]]
    # Ansible's message, without the name of the temporary file.
    assert ended.result["msg"].startswith(f"dest: chattr failed: Operation not supported on {dest}. ")
    assert sandbox.accepts(dest.read_text())
    assert dest.read_text() not in ended.printed


@pytest.mark.parametrize(
    ("invalid", "kind"),
    [
        ({"owner": "nobody-of-that-name"}, "secret_file"),
        # The owner could not read the file. An octal number without quotes is a decimal one: 640 is 01200.
        ({"mode": 640}, "invalid_option"),
        ({"mode": "u-r"}, "invalid_option"),
    ],
    ids=str,
)
def test_invalid_attributes_fail_before_the_key_is_created(
    sandbox: Sandbox, options: dict[str, Any], dest: Path, invalid: dict[str, Any], kind: str
) -> None:
    ended = run_main(api_key, {**options, **invalid})
    assert ended.failure["kind"] == kind
    assert ".tmp" not in ended.result["msg"]
    assert writes(sandbox) == [] and not dest.exists()


@one_key
@pytest.mark.parametrize("check_mode", [True, False], ids=["check mode", "real"])
def test_mode_of_an_existing_file_is_changed(options: dict[str, Any], dest: Path, check_mode: bool) -> None:
    dest.write_text(OLD_SECRET)
    dest.chmod(0o644)
    ended = run_main(api_key, options, check_mode, diff=True).success
    assert ended["changed"]
    assert mode_of(dest) == (0o644 if check_mode else 0o640)
    before, after = ended["diff"]["before"], ended["diff"]["after"]
    assert before.pop("api_keys") == after.pop("api_keys")
    assert (before, after) == ({"path": str(dest), "mode": "0644"}, {"path": str(dest), "mode": "0640"})


@one_key
@pytest.mark.parametrize(("mode", "expected"), [(None, 0o640), ("u+rw", 0o640), ("0600", 0o600)])
def test_access_list_is_effective_unless_the_mode_withdraws_it(
    options: dict[str, Any], dest: Path, mode: str | None, expected: int
) -> None:
    dest.write_text(OLD_SECRET)
    dest.chmod(0o600)
    set_access_list(dest)
    for regenerate in ("never", "always"):
        run_main(api_key, {**options, "mode": mode, "regenerate": regenerate})
        # The group's permissions in the mode are the mask of the list.
        assert (access_list(dest) is None, mode_of(dest)) == (False, expected)
