# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The AWX files are valid for AWX and consistent with each other and with the example project."""

from __future__ import annotations

import re

import pytest
import yaml
from jinja2 import meta
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jobs import Controller

VARIABLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# Of what AWX accepts, the keys and types that the files have.
FIELD_KEYS = {"id", "type", "label", "help_text", "format", "secret"}
QUESTION_TYPES = {"text": str, "integer": int}
SURVEYS = ("surveys/branch_with_database.yml", "surveys/drain_projects.yml")


def test_credential_type_inputs_are_valid(controller: Controller) -> None:
    inputs = controller.settings("credential_type/inputs.yml")
    assert set(inputs) == {"fields", "required"}
    for field in inputs["fields"]:
        assert {"id", "label", "type"} <= set(field) <= FIELD_KEYS
        assert VARIABLE.fullmatch(field["id"]) and field["id"] != "tower"
        assert field["type"] in ("string", "boolean")
        assert field.get("format", "url") in ("url", "ssh_private_key")
    ids = [field["id"] for field in inputs["fields"]]
    assert sorted(set(ids)) == sorted(ids)
    assert set(inputs["required"]) <= set(ids)
    # The id changes with the key, so neither must be compared when the configuration is applied again.
    assert [field["id"] for field in inputs["fields"] if field.get("secret")] == ["api_key", "api_key_id"]


def test_credential_type_injectors_are_valid(controller: Controller) -> None:
    injectors = controller.settings("credential_type/injectors.yml")
    assert set(injectors) <= {"env", "extra_vars", "file"}
    fields = {field["id"] for field in controller.settings("credential_type/inputs.yml")["fields"]}
    used = set()
    for name, template in injectors["env"].items():
        assert VARIABLE.fullmatch(name) and not name.startswith("ANSIBLE_") and template.isascii()
        used |= meta.find_undeclared_variables(ImmutableSandboxedEnvironment().parse(template))
    assert used == fields


@pytest.mark.parametrize("file", SURVEYS)
def test_a_survey_is_what_awx_accepts(controller: Controller, file: str) -> None:
    survey = controller.settings(file)
    assert set(survey) == {"name", "description", "spec"}
    for question in survey["spec"]:
        assert {"type", "question_name", "question_description", "variable", "required"} <= set(question)
        assert VARIABLE.fullmatch(question["variable"])
        assert isinstance(question["required"], bool)
        assert question["default"] == "" or isinstance(question["default"], QUESTION_TYPES[question["type"]])
        assert isinstance(question["min"], int) and isinstance(question["max"], int)
    variables = [question["variable"] for question in survey["spec"]]
    assert len(set(variables)) == len(variables)


def test_playbooks_and_the_source_exist(controller: Controller) -> None:
    examples = controller.collection / "examples"
    for template in controller.settings("configuration/job_templates.yml")["controller_templates"]:
        assert (examples / template["playbook"]).is_file()
    for source in controller.settings("configuration/inventories.yml")["controller_inventory_sources"]:
        assert (examples / source["source_path"]).is_file()


def test_schedules_are_valid(controller: Controller) -> None:
    for schedule in controller.settings("configuration/schedules.yml")["controller_schedules"]:
        start, rule = schedule["rrule"].split()
        assert re.fullmatch(r"DTSTART(;TZID=[\w/]+:\d{8}T\d{6}|:\d{8}T\d{6}Z)", start)
        name, _colon, recurrence = rule.partition(":")
        parts = dict(part.split("=") for part in recurrence.split(";"))
        assert name == "RRULE"
        # AWX requires an interval and does not support seconds.
        assert (
            parts["FREQ"] in ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY")
            and int(parts["INTERVAL"]) > 0
        )


def test_project_requirements_list_the_used_collections(controller: Controller) -> None:
    examples = controller.collection / "examples"
    listed = yaml.safe_load((examples / "collections" / "requirements.yml").read_text(encoding="utf-8"))["collections"]
    used: set[str] = set()
    for playbook in examples.rglob("*.yml"):
        used |= set(
            re.findall(r"\b([a-z]+\.[a-z_]+)\.[a-z0-9_]+:?$", playbook.read_text(encoding="utf-8"), re.MULTILINE)
        )
    assert {each["name"] for each in listed} == used - {"ansible.builtin"}
