# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""configure.yml, applied by the modules of awx.awx to a fake AWX."""

from __future__ import annotations

import json
import re

import pytest
from awx_api import Awx
from fake_service import TOKEN
from jobs import Controller

KEY = "the-secret-api-key"


def configure(controller: Controller, awx: Awx, code: int = 0, **env: str) -> str:
    env = {
        "ANSIBLE_NOCOLOR": "1",
        "CLOUDDB_API_KEY": KEY,
        "CLOUDDB_API_KEY_ID": "12",
        "CLOUDDB_ORG_ID": "org-1",
        "CLOUDDB_BASE_URL": "https://control.example.com/api/v2",
        "CONTROLLER_HOST": awx.url,
        "CONTROLLER_OAUTH_TOKEN": TOKEN,
        **env,
    }
    site = "clouddb_awx_organization=Platform"
    return controller.run(
        "ansible-playbook", "-vvv", "--extra-vars", site, str(controller.files / "configure.yml"), env=env, code=code
    )


@pytest.mark.smoke
def test_configuration_is_applied_and_idempotent(controller: Controller, awx: Awx) -> None:
    access = awx.add("credentials", {"name": "awx"})
    first = configure(controller, awx)

    [kind] = awx.objects["credential_types"]
    assert kind["inputs"] == controller.settings("credential_type/inputs.yml")
    assert kind["injectors"] == controller.settings("credential_type/injectors.yml")
    assert kind["kind"] == "cloud"

    credential = awx.one("credentials", "clouddb")
    assert credential["credential_type"] == kind["id"]
    assert credential["organization"] == awx.one("organizations", "Platform")["id"]
    assert credential["inputs"] == {
        "base_url": "https://control.example.com/api/v2",
        "api_key": KEY,
        "api_key_id": "12",
        "org_id": "org-1",
    }

    project = awx.one("projects", "clouddb automation")
    [source] = awx.objects["inventory_sources"]
    assert source["source_project"] == project["id"]
    assert source["credential"] == credential["id"]
    assert source["inventory"] == awx.one("inventories", "clouddb projects")["id"]
    assert source["overwrite"] and source["update_on_launch"]

    ids = {"clouddb": credential["id"], "awx": access["id"]}
    for wanted in controller.settings("configuration/job_templates.yml")["controller_templates"]:
        template = awx.one("job_templates", wanted["name"])
        assert template["playbook"] == wanted["playbook"]
        assert template["project"] == project["id"]
        assert template["inventory"] == awx.one("inventories", wanted["inventory"])["id"]
        assert set(template["_credentials"]) == {ids[name] for name in wanted["credentials"]}
        assert template["allow_simultaneous"] == wanted.get("allow_simultaneous", False)
        assert template["survey_enabled"] == ("survey_spec" in wanted)
        for prompt in ("ask_limit_on_launch", "ask_job_slice_count_on_launch"):
            assert template[prompt] == wanted.get(prompt, False)
    drain = awx.one("job_templates", "clouddb drain projects")
    assert drain["_survey_spec"] == controller.settings("surveys/drain_projects.yml")
    assert drain["ask_limit_on_launch"] and drain["ask_job_slice_count_on_launch"] and drain["forks"] == 5
    rotation = awx.one("job_templates", "clouddb rotate key")
    assert json.loads(rotation["extra_vars"]) == {"clouddb_awx_organization": "Platform"}
    # An empty value is sent too: otherwise variables that were removed from the files would remain in AWX.
    assert json.loads(drain["extra_vars"]) == {}

    for wanted in controller.settings("configuration/schedules.yml")["controller_schedules"]:
        schedule = awx.one("schedules", wanted["name"])
        assert schedule["rrule"] == wanted["rrule"]
        assert schedule["unified_job_template"] == awx.one("job_templates", wanted["unified_job_template"])["id"]

    # A newer key, stored by a rotation, is kept.
    newer = {"api_key": "newer", "api_key_id": "13"}
    credential["inputs"].update(newer)
    second = configure(controller, awx)
    assert re.search(r"localhost +: ok=10 +changed=0 ", second), second
    assert credential["inputs"].items() >= newer.items()

    assert KEY not in first + second


@pytest.mark.parametrize("missing", ["CLOUDDB_API_KEY", "CLOUDDB_BASE_URL"])
def test_missing_variable_does_not_clear_the_credential(controller: Controller, awx: Awx, missing: str) -> None:
    output = configure(controller, awx, code=2, **{missing: ""})
    assert f"{missing} is not set." in output
    assert awx.objects["credentials"] == []
