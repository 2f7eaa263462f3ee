# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin against the sandbox."""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.inventory.manager import InventoryManager
from ansible.parsing import vault
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import inventory_loader
from ansible.template import Templar
from ansible.utils.display import Display

from ansible_collections.clouddb.control.tests.unit.support.module_main import no_registered_secrets, secrets
from ansible_collections.clouddb.control.tests.unit.support.sandbox import Sandbox
from ansible_collections.clouddb.control.tests.unit.support.scripted_service import reply, scripted_service

try:
    from ansible.template import trust_as_template as trusted
except ImportError:  # ansible-core up to 2.18

    def trusted(value: str) -> str:
        return value


SEED = [
    {"id": "p-1", "name": "shop", "region_id": "aws-eu-central-1"},
    {"id": "p-2", "name": "shop", "region_id": "aws-us-east-2"},
    {"id": "p-3", "name": "blog {{ 1 + 1 }}", "region_id": "aws-us-east-2"},
]
ORGANIZATION = "org-sandbox-12345678"
VAULT = [("default", vault.VaultSecret(b"password"))]
if hasattr(vault, "VaultSecretsContext"):  # ansible-core 2.19 and later
    vault.VaultSecretsContext.initialize(vault.VaultSecretsContext(VAULT))


class Vaulted(str):
    """A text that is C(!vault) in the configuration file."""


yaml.SafeDumper.add_representer(
    Vaulted,
    lambda dumper, text: dumper.represent_scalar(
        "!vault", vault.VaultLib(VAULT).encrypt(text, VAULT[0][1]).decode(), "|"
    ),
)


@pytest.fixture
def seed() -> dict[str, Any]:
    return {"projects": SEED}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings."""
    warnings: list[str] = []
    monkeypatch.setattr(Display, "warning", lambda _display, text: warnings.append(text))
    return warnings


def configured(path: Path, service: Any, **options: Any) -> str:
    """The path of a configuration file with these options."""
    own = {"base_url": service.base_url, "api_key": getattr(service, "api_key", "any"), "api_retries": 0}
    path.write_text(yaml.safe_dump({"plugin": "clouddb.control.projects", **own, **options}, sort_keys=False))
    return str(path)


def parse(
    folder: Path, service: Any, use_cache: bool = True, inventory: InventoryData | None = None, **options: Any
) -> InventoryData:
    """The inventory for a configuration file with these options; the service is a sandbox, or one that lists these projects."""
    if isinstance(service, list):
        with scripted_service(reply({"projects": service})) as listing:
            return parse(folder, listing, use_cache, inventory, **options)
    path = configured(folder / "test.clouddb.yml", service, **options)
    plugin = inventory_loader.get("clouddb.control.projects")
    inventory = inventory or InventoryData()
    loader = DataLoader()
    loader.set_vault_secrets(VAULT)
    assert plugin.verify_file(path)
    plugin.parse(inventory, loader, path, **({} if use_cache else {"cache": False}))
    if options.get("cache"):
        # The inventory manager does this after parse.
        plugin.update_cache_if_changed()
    return inventory


def names(inventory: InventoryData, group: str) -> list[str]:
    """The hosts of a group."""
    return sorted(host.name for host in inventory.groups[group].get_hosts())


def cached_in(folder: Path) -> dict[str, Any]:
    """The options of a cache in this directory."""
    return {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(folder)}


def test_projects_are_hosts_with_their_fields(tmp_path: Path, sandbox: Sandbox) -> None:
    inventory = parse(tmp_path, sandbox)

    served = {project["id"]: project for project in sandbox.api("GET", "/projects")["projects"]}
    hosts = {host.vars["clouddb_id"]: host for host in inventory.hosts.values()}
    assert set(hosts) == set(served)
    for project_id, project in served.items():
        assert {f"clouddb_{field}": value for field, value in project.items()}.items() <= hosts[project_id].vars.items()
    assert names(inventory, "clouddb_projects") == ["blog____1___1___", "shop-p-1", "shop-p-2"]


def test_constructed_groups_and_variables(tmp_path: Path, sandbox: Sandbox) -> None:
    keyed_groups = [
        {"key": "clouddb_region_id", "prefix": "region"},
        {"key": "clouddb_pg_version", "prefix": "pg"},
        {"key": "clouddb_pg_version < 1", "prefix": "is_old"},
        {"key": "none", "prefix": "null", "default_value": "default"},
    ]
    others = {"groups": {"shops": "clouddb_name == 'shop'"}, "compose": {"ansible_host": "clouddb_proxy_host"}}
    inventory = parse(tmp_path, sandbox, hostnames=["id"], strict=True, keyed_groups=keyed_groups, **others)
    assert names(inventory, "region_aws_us_east_2") == ["p-2", "p-3"]
    assert names(inventory, "shops") == ["p-1", "p-2"]
    version = inventory.hosts["p-1"].vars["clouddb_pg_version"]
    assert isinstance(version, int)
    assert "p-1" in names(inventory, f"pg_{version}")
    assert names(inventory, "is_old_False") == names(inventory, "null_default") == ["p-1", "p-2", "p-3"]
    assert inventory.hosts["p-1"].vars["ansible_host"] == inventory.hosts["p-1"].vars["clouddb_proxy_host"]


def test_filters_and_query(tmp_path: Path, sandbox: Sandbox) -> None:
    by_filter = parse(tmp_path, sandbox, hostnames=["id"], filters={"name": "shop", "region_id": "aws-us-east-2"})
    by_query = parse(tmp_path, sandbox, hostnames=["id"], query={"search": "blog"}, page_size=1)

    assert list(by_filter.hosts) == ["p-2"]
    assert list(by_query.hosts) == ["p-3"]
    assert sandbox.requests()[-1]["query"].startswith("search=blog&limit=1")


def test_operations_lists_unfinished_and_failed_ones_of_a_day(tmp_path: Path, sandbox: Sandbox) -> None:
    sandbox.advance(3600)
    sandbox.plan((0, "running"), (1, "failed"), error="no space left")
    failed = sandbox.api("PATCH", "/projects/p-1", {"project": {"history_retention_seconds": 60}})["operations"][0]
    sandbox.plan((0, "running"), (1, "finished"))
    sandbox.api("PATCH", "/projects/p-2", {"project": {"history_retention_seconds": 60}})
    sandbox.advance(86400 - 60)
    options = {"hostnames": ["id"], "operations": True, "groups": {"broken": "clouddb_operations | length > 0"}}
    inventory = parse(tmp_path, sandbox, **options)
    assert [operation["id"] for operation in inventory.hosts["p-1"].vars["clouddb_operations"]] == [failed["id"]]
    assert inventory.hosts["p-2"].vars["clouddb_operations"] == []
    assert names(inventory, "broken") == ["p-1"]
    sandbox.advance(120)
    assert parse(tmp_path, sandbox, **options).hosts["p-1"].vars["clouddb_operations"] == []


def test_a_project_that_was_deleted_before_its_operations_were_listed_is_named(
    tmp_path: Path, sandbox: Sandbox, shown: list[str]
) -> None:
    sandbox.fault("status", status=404, path="/projects/p-2/operations", times=None)
    cache = cached_in(tmp_path / "cache")
    for _run in range(2):
        inventory = parse(tmp_path, sandbox, hostnames=["id"], operations=True, **cache)
        assert "clouddb_operations" not in inventory.hosts["p-2"].vars
        assert inventory.hosts["p-1"].vars["clouddb_operations"] == []
    assert len(shown) == 2, "what is incomplete is not cached"
    for warning in shown:
        assert "returned 404 for them" in warning
        assert warning.endswith(": p-2.")


def test_vaulted_values(tmp_path: Path, sandbox: Sandbox) -> None:
    texts = {"api_key": sandbox.api_key, "base_url": sandbox.base_url, "ca_path": requests.certs.where()}
    texts |= {"page_size": "2", "api_timeout": "20", "hostvars_prefix": "pg_"}
    vaulted = {option: Vaulted(text) for option, text in texts.items()}
    selection = {"filters": {"name": Vaulted("shop")}, "query": {"search": [Vaulted("sho")]}}
    inventory = parse(tmp_path, sandbox, **vaulted, **selection, hostnames=[Vaulted("id")])
    assert {name: host.vars["pg_name"] for name, host in inventory.hosts.items()} == {"p-1": "shop", "p-2": "shop"}


def test_cache_saves_requests_and_contains_no_key(tmp_path: Path, sandbox: Sandbox) -> None:
    cache = cached_in(tmp_path / "cache")

    def run(**options: Any) -> tuple[bool, list[str]]:
        """Whether the service was asked, and the hosts."""
        before = len(sandbox.requests())
        hosts = list(parse(tmp_path, sandbox, **cache, **options).hosts)
        return len(sandbox.requests()) > before, hosts

    asked, hosts = run()
    assert (asked, run()) == (True, (False, hosts))
    shops = {"filters": {"name": "shop"}}
    assert run(**shops, query={"search": "s", "org_id": ORGANIZATION})[0], "other options have another entry"
    assert not run(**shops, query={"org_id": ORGANIZATION, "search": "s"})[0], "their order does not matter"
    assert run(use_cache=False)[0], "a refresh fetches again"
    for file in (tmp_path / "cache").iterdir():
        assert sandbox.api_key not in file.name + file.read_text()


def test_the_organization_is_an_option_or_a_variable_of_the_environment(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.fault("require_org_id", times=None)
    with pytest.raises(AnsibleParserError, match=f"Set org_id or CLOUDDB_ORG_ID to one of: {ORGANIZATION}"):
        parse(tmp_path, sandbox)
    assert len(parse(tmp_path, sandbox, org_id=ORGANIZATION).hosts) == len(SEED)
    monkeypatch.setenv("CLOUDDB_ORG_ID", "org-2")
    with pytest.raises(AnsibleParserError, match=r"no organization org-2 \(CLOUDDB_ORG_ID\)"):
        parse(tmp_path, sandbox)


def test_each_key_has_its_own_cache_entry(tmp_path: Path) -> None:
    with scripted_service(*[reply({"projects": []})] * 2) as service:
        for api_key in "ab":
            parse(tmp_path, service, api_key=api_key, **cached_in(tmp_path / "cache"))
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"api_key": "wrong"}, "GET /projects returned 401"),
        ({"base_url": "http://control.example.com/api/v2"}, "base_url:"),
        ({"filters": {"color": "red", "age": 1}}, "filters: unknown keys: age, color"),
        ({"filters": {"name": None}}, "filters:"),
        ({"filter": {"name": "shop"}}, "filter: there is no such option. Did you mean filters?"),
        ({"zzz": 1}, "zzz: there is no such option. The options are allow_http"),
        ({"filters": {"name": date(2026, 1, 2)}}, "filters: name must be text, not the date 2026-01-02. Quote it."),
        ({"query": {"since": date(2026, 1, 1)}}, "query:"),
        ({"page_size": 0}, "page_size:"),
        ({"workers": 0}, "workers:"),
        # Ansible converts all other values to false, which would turn off the validation of certificates.
        *(({"validate_certs": value}, "validate_certs: ") for value in ("ture", "{{ true }}", "", 2, ["yes"])),
    ],
)
def test_errors_are_parser_errors(tmp_path: Path, sandbox: Sandbox, options: dict[str, Any], named: str) -> None:
    with pytest.raises(AnsibleParserError, match=f"^{named}"):
        parse(tmp_path, sandbox, **options)
    assert sandbox.sent() == ["GET /projects"] * named.startswith("GET")


def test_extra_variables_can_be_used(tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible.plugins.inventory.load_extra_vars", lambda loader: {"secret": sandbox.api_key})
    assert parse(tmp_path, sandbox, api_key="{{ secret }}").groups["clouddb_projects"].get_hosts()


def test_missing_library_is_named(tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = inventory_loader.get("clouddb.control.projects")
    monkeypatch.setattr(sys.modules[type(plugin).__module__], "REQUESTS_IMPORT_ERROR", "Traceback")
    with pytest.raises(AnsibleParserError, match=" pip install requests$"):
        parse(tmp_path, sandbox)


def test_the_name_of_the_file_selects_the_plugin(tmp_path: Path) -> None:
    plugin = inventory_loader.get("clouddb.control.projects")
    for name in ("clouddb.yml", "prod.clouddb.yaml"):
        (tmp_path / name).touch()
        assert plugin.verify_file(str(tmp_path / name))
    assert not plugin.verify_file(str(tmp_path / "missing.clouddb.yml"))


def test_a_file_whose_name_ends_otherwise_says_how_it_must_end(tmp_path: Path, shown: list[str]) -> None:
    file = tmp_path / "projects.yml"
    file.write_text("plugin: clouddb.control.projects")
    (tmp_path / "static.ini").write_text("www1\n")
    manager = InventoryManager(DataLoader(), [str(file), str(tmp_path / "static.ini")])
    assert list(manager.hosts) == ["www1"]
    message = rf"must end in clouddb.yml or clouddb.yaml. Rename {re.escape(str(file))}\."
    plugin = inventory_loader.get("clouddb.control.projects")
    with pytest.raises(AnsibleParserError, match=message):
        inventory_loader.get("auto").parse(InventoryData(), DataLoader(), str(file))
    with pytest.raises(AnsibleParserError, match=message):
        plugin.verify_file(str(file))


def test_name_of_a_group_is_not_the_name_of_a_host(tmp_path: Path) -> None:
    projects = [
        {"id": "p-1", "name": "innocent", "region_id": "r1", "locked": False},
        {"id": "p-2", "name": "region_r1", "region_id": "r2", "locked": True},
        {"id": "p-3", "name": "web", "region_id": "r2", "locked": True},
        {"id": "p-4", "name": "Locked", "region_id": "r2", "locked": True},
    ]
    earlier = InventoryData()
    earlier.add_group("web")
    earlier.add_host("www1", "web")
    options = {
        "groups": {"locked": "clouddb_locked"},
        "keyed_groups": [{"key": "clouddb_region_id", "prefix": "region"}],
        "compose": {"seen": "true"},
    }
    inventory = parse(tmp_path, projects, inventory=earlier, **options)
    assert names(inventory, "locked") == ["Locked-p-4", "region_r1-p-2", "web-p-3"]
    assert names(inventory, "region_r1") == ["innocent"]
    assert not set(inventory.groups) & set(inventory.hosts)
    assert names(inventory, "web") == ["www1"]
    assert inventory.groups["web"].vars == {}
    assert [inventory.hosts[name].vars["seen"] for name in names(inventory, "clouddb_projects")] == [True] * 4


@pytest.mark.parametrize(
    ("region", "options", "message"),
    [
        (
            "r1",
            {"keyed_groups": [{"key": "clouddb_region_id", "default_value": "none", "trailing_separator": False}]},
            "^keyed_groups: .*: parameters are mutually exclusive .* No host was added",
        ),
        (
            "localhost",
            {"leading_separator": False},
            "^keyed_groups, groups: no group may be named localhost, .* No host was added",
        ),
    ],
)
def test_a_project_that_fails_leaves_nothing_of_the_source(
    tmp_path: Path, region: Any, options: dict[str, Any], message: str
) -> None:
    """With a part of the groups, a play could run on hosts that it excludes."""
    projects = [{"id": "p-1", "region_id": "r1"}, {"id": "p-2", "region_id": region}, {"id": "p-3", "region_id": "r1"}]
    inventory = InventoryData()
    inventory.add_group("web")
    for host in ("www1", "localhost"):
        inventory.add_host(host, "web")
    groups = set(inventory.groups)
    keyed_groups = [{"key": "clouddb_region_id"}, {"key": "'p-1'", "prefix": "id"}]
    with pytest.raises(AnsibleParserError, match=message):
        parse(tmp_path, projects, inventory=inventory, **{"keyed_groups": keyed_groups, **options})
    assert (set(inventory.hosts), set(inventory.groups)) == ({"www1", "localhost"}, groups)


@pytest.mark.parametrize(
    ("keyed", "options", "group"),
    [
        ({"prefix": "pg"}, {}, "pg_r1"),
        ({}, {}, "_r1"),
        ({}, {"leading_separator": False}, "r1"),
        ({"prefix": "pg", "separator": ""}, {}, "pgr1"),
        ({"key": "{'region': clouddb_region}"}, {}, "_region_r1"),
        ({"key": "[clouddb_region, 'x']", "prefix": "pg"}, {}, "pg_x"),
        ({"parent_group": "up"}, {}, "up"),
        ({"key": "none", "prefix": "pg", "default_value": "no"}, {}, "pg_no"),
        ({"key": "'on_' ~ inventory_hostname", "prefix": "pg"}, {}, "pg_on_r1"),
        ({"key": "'R1'", "prefix": "pg"}, {}, "pg_r1"),
        ({"key": "early", "prefix": "pg"}, {"compose": {"early": "'x'"}}, "pg_x"),
        ({"prefix": "pg"}, {"compose": {"n": "1 if clouddb_id == 'p-2' else none"}}, "PG_R1"),
    ],
)
def test_no_host_has_the_name_of_a_keyed_group(
    tmp_path: Path, keyed: dict[str, Any], options: dict[str, Any], group: str
) -> None:
    projects = [{"id": "p-1", "name": group, "region": "r1"}, {"id": "p-2", "name": "r1", "region": "r1"}]
    keyed_groups = [{"key": "clouddb_region", **keyed}]
    inventory = parse(tmp_path, projects, keyed_groups=keyed_groups, strict=True, **options)
    assert f"{group}-p-1".lstrip("_") in {name.lstrip("_") for name in inventory.hosts}
    assert not {name.lower() for name in inventory.hosts} & {name.lower() for name in inventory.groups}
    assert len(inventory.groups["clouddb_projects"].hosts) == 2
    assert all(host.vars["clouddb_region"] == "r1" for host in inventory.hosts.values())


def test_a_group_that_always_gets_the_name_of_its_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Group names may have dashes with the setting force_valid_group_names: ignore."""
    plugin = type(inventory_loader.get("clouddb.control.projects"))
    monkeypatch.setattr(plugin, "_sanitize_group_name", staticmethod(str))
    monkeypatch.setattr("ansible.inventory.group.to_safe_group_name", str)
    inventory = InventoryData()
    options = {"keyed_groups": [{"key": "inventory_hostname"}], "leading_separator": False}
    with pytest.raises(AnsibleParserError, match="no group may be named p1-[0-9a-f]{16}, .* Set a prefix"):
        parse(tmp_path, [{"id": "p1"}], inventory=inventory, **options)
    assert not inventory.hosts


def test_a_group_with_the_name_of_a_host_of_an_earlier_source_leaves_nothing(tmp_path: Path) -> None:
    inventory = InventoryData()
    inventory.add_group("old")
    projects = [{"id": "p-1", "name": "region_r1"}, {"id": "p-2", "region_id": "r1"}]
    parse(tmp_path, projects[:1], inventory=inventory)

    def state() -> Any:
        hosts = {name: (dict(host.vars), sorted(map(str, host.groups))) for name, host in inventory.hosts.items()}
        return hosts, {name: sorted(map(str, group.hosts)) for name, group in inventory.groups.items()}

    before = state()
    keyed_groups = [{"key": "clouddb_region_id | default('x')", "prefix": "region", "parent_group": "old"}]
    options = {"keyed_groups": keyed_groups, "groups": {"old": "true"}, "compose": {"seen": "1"}}
    with pytest.raises(AnsibleParserError, match="no group may be named region_r1, as there is a host"):
        parse(tmp_path, projects, inventory=inventory, **options)
    assert state() == before
    assert inventory.groups["old"].child_groups == []


def test_projects_of_the_same_name_in_two_accounts_are_two_hosts_even_after_a_refresh(tmp_path: Path) -> None:
    accounts = [[{"id": "p-1", "name": "shop"}], [{"id": "p-2", "name": "Shop"}]]
    with (
        scripted_service(*[reply({"projects": accounts[0]})] * 2) as first,
        scripted_service(*[reply({"projects": accounts[1]})] * 2) as second,
    ):
        files = []
        for number, service in enumerate((first, second)):
            options = {"hostvars_prefix": f"pg{number}_", "keyed_groups": [{"key": f"pg{number}_id"}]}
            path = tmp_path / f"k{number}.clouddb.yml"
            files.append(configured(path, service, compose={"number": "1"}, **options))
        manager = InventoryManager(DataLoader(), files)
        before = {host.name for host in manager.get_hosts()}
        manager.refresh_inventory()
        after = {host.name for host in manager.get_hosts()}
    assert before == after == {"shop", "Shop-p-2"}
    assert len({type(host.vars["number"]) for host in manager.get_hosts()}) == 1


HOSTILE = "{{ lookup('ansible.builtin.env', 'HOME') }}"


def test_values_of_the_service_are_never_rendered(tmp_path: Path) -> None:
    projects = [
        {"id": "p-1", "name": HOSTILE, "tags": [{"k": HOSTILE}], "ansible_host": "x", "a-b": 1, "connection": "x"},
        {"id": "p-2", "name": "..", "region_id": HOSTILE},
    ]
    options = {
        "compose": {"named": "'host ' ~ clouddb_name", "tagged": "clouddb_tags | default([]) | map(attribute='k')"},
        "keyed_groups": [{"key": "clouddb_region_id | default('x')", "prefix": "", "separator": ""}],
    }
    inventory = parse(tmp_path, projects, **options)
    assert sorted(inventory.hosts) == ["___lookup__ansible.builtin.env____HOME_____", "p-2"]
    host = inventory.hosts["___lookup__ansible.builtin.env____HOME_____"]
    rendered = Templar(loader=DataLoader(), variables=host.vars)
    for expression, value in {
        "clouddb_name": HOSTILE,
        "named": f"host {HOSTILE}",
        "tagged | first": HOSTILE,
        "clouddb_tags[0].k": HOSTILE,
    }.items():
        assert rendered.template(trusted(f"{{{{ {expression} }}}}")) == value
    assert {"ansible_host", "clouddb_a-b"}.isdisjoint(host.vars)
    assert host.vars["clouddb_ansible_host"] == "x"
    assert all(re.fullmatch(r"\w+", group) for group in inventory.groups)


def test_an_empty_prefix_does_not_set_variables_of_connections(tmp_path: Path, shown: list[str]) -> None:
    project = {"id": "p-1", "ansible_connection": "local", "ansible_python_interpreter": "touch x;", "region_id": "r"}
    project["Owner"] = "me"
    own = ["inventory_dir", "inventory_file", "groups", "omit", "playbook_dir", "hostvars", "group_names", "lookup"]
    own.append("vars")
    project |= dict.fromkeys(own, "x")
    inventory = parse(tmp_path, [project], hostvars_prefix="")
    assert not [name for name in inventory.hosts["p-1"].vars if name.startswith("ansible_")]
    assert (inventory.hosts["p-1"].vars["region_id"], inventory.hosts["p-1"].vars["Owner"]) == ("r", "me")
    assert "x" not in inventory.hosts["p-1"].vars.values()
    left_out = ["ansible_connection", "ansible_python_interpreter", *own]
    assert shown == [f"Fields of projects that cannot be host variables are left out: {', '.join(left_out)}."]


def test_local_connection(tmp_path: Path, sandbox: Sandbox) -> None:
    own = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    other = {"local_connection": True, "compose": {"ansible_connection": "'other'"}}
    cases = (({}, {}), ({"local_connection": True}, own), (other, {**own, "ansible_connection": "other"}))
    for options, expected in cases:
        for host in parse(tmp_path, sandbox, **options).hosts.values():
            assert {name: value for name, value in host.vars.items() if name in own} == expected


def test_incomplete_list_is_an_error_unless_allowed_and_is_not_cached(
    tmp_path: Path, sandbox: Sandbox, shown: list[str]
) -> None:
    sandbox.fault("unavailable_projects", ids=["p-1"], times=None)
    options = {**cached_in(tmp_path / "cache"), "hostnames": ["id"]}
    with pytest.raises(AnsibleParserError, match="incomplete.* p-1.* set allow_incomplete: true"):
        parse(tmp_path, sandbox, **options)
    assert list(parse(tmp_path, sandbox, filters={"project_id": "p-2"}, **options).hosts) == ["p-2"]
    shown.clear()
    assert sorted(parse(tmp_path, sandbox, allow_incomplete=True, **options).hosts) == ["p-2", "p-3"]
    [warning] = shown
    assert "p-1" in warning
    sandbox.control("DELETE", "/faults")
    # The incomplete list was not cached.
    assert sorted(parse(tmp_path, sandbox, **options).hosts) == ["p-1", "p-2", "p-3"]


@pytest.mark.parametrize(
    ("selection", "hint"),
    [
        ({"filters": {"name": "shoop"}}, "Did you mean shop?"),
        ({"filters": {"project_id": "shop"}}, "If this is the name of a project, set name."),
        ({"query": {"search": "nothing"}}, "There is no project with query search=nothing"),
    ],
)
def test_filters_that_match_nothing_warn_in_each_run(
    tmp_path: Path, sandbox: Sandbox, shown: list[str], selection: dict[str, Any], hint: str
) -> None:
    for _run in range(2):
        assert not parse(tmp_path, sandbox, **selection, **cached_in(tmp_path / "cache")).hosts
    assert len(shown) == 2
    assert all(hint in warning for warning in shown)


@pytest.mark.parametrize(
    "content", ["", " ", '[{"id": "p-', "null", '"x"', '[{"name": "a"}]', '[{"id": "../x"}]', "{}", "[1]", "\xff"]
)
def test_a_damaged_cache_is_a_miss(tmp_path: Path, sandbox: Sandbox, content: str) -> None:
    options = cached_in(tmp_path / "cache")
    hosts = set(parse(tmp_path, sandbox, **options).hosts)
    [file] = (tmp_path / "cache").iterdir()
    whole = file.read_text()
    file.write_bytes(content.encode("latin-1") or whole.replace("p-1", "..").encode())
    assert set(parse(tmp_path, sandbox, **options).hosts) == hosts
    assert file.read_text() == whole


def test_example_is_valid(tmp_path: Path, sandbox: Sandbox) -> None:
    from ansible_collections.clouddb.control.plugins.inventory import projects

    own = {"base_url": sandbox.base_url, "api_key": sandbox.api_key, "cache_connection": str(tmp_path / "cache")}
    assert len(parse(tmp_path, sandbox, **{**yaml.safe_load(projects.EXAMPLES), **own, "strict": True}).hosts) == 3


@pytest.mark.parametrize("file", ["examples/inventory/account.clouddb.yml", "docs/docsite/rst/inventory.rst"])
def test_patterns_of_the_groups_of_the_guide_select_their_projects(tmp_path: Path, file: str) -> None:
    """Projects have the names of the groups."""
    text = (Path(__file__).parents[4] / file).read_text(encoding="utf-8")
    if file.endswith(".rst"):
        text = re.split(r"\n\n\.\. ", text.split(":caption: account.clouddb.yml\n", 1)[1])[0]
    config = yaml.safe_load(text)
    names = ["postgres_17", "region_r1", "locked", "clouddb_projects", "all", "ungrouped"]
    fields = {"region_id": "r1", "pg_version": 17, "locked": True}
    projects = [{"id": f"p-{number}", "name": name, **fields} for number, name in enumerate(names)]
    with scripted_service(reply({"projects": projects})) as service:
        manager = InventoryManager(DataLoader(), [configured(tmp_path / "k.clouddb.yml", service, **config)])
    for group in {*manager.groups} - {"ungrouped"}:
        for pattern in (group, f"all:&{group}"):
            assert len(manager.get_hosts(pattern)) == len(names), pattern
        assert not manager.get_hosts(f"all:!{group}")


@pytest.mark.skipif(not secrets, reason="only ansible-core from 2.22 on registers secrets")
def test_key_is_registered_as_a_secret(tmp_path: Path, sandbox: Sandbox) -> None:
    with no_registered_secrets():
        parse(tmp_path, sandbox)
        assert secrets.mask_secrets(sandbox.api_key) == "$REDACTED$"
