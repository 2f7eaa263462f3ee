# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Code, documentation, metadata and README agree with each other. Of options, the sanity test validate-modules says so."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from ansible.release import __version__ as ansible_version

from ansible_collections.clouddb.control.plugins.doc_fragments import connection as connection_fragment
from ansible_collections.clouddb.control.plugins.doc_fragments.attributes import ModuleDocFragment
from ansible_collections.clouddb.control.plugins.module_utils._errors import FailureKind
from ansible_collections.clouddb.control.plugins.module_utils._http.connection import CONNECTION_OPTIONS
from ansible_collections.clouddb.control.plugins.module_utils._http.session import COLLECTION_VERSION
from ansible_collections.clouddb.control.plugins.module_utils._module import MAY_LACK_VALUE
from ansible_collections.clouddb.control.plugins.module_utils._resources import kinds
from ansible_collections.clouddb.control.tests.tools.supported import ANSIBLE_CORE, OLDEST_LIBRARIES, TARGET_PYTHON
from ansible_collections.clouddb.control.tests.unit.support.each_module import EACH_MODULE, name_of
from ansible_collections.clouddb.control.tests.unit.support.module_main import arguments_of
from ansible_collections.clouddb.control.tests.unit.support.return_values import OF_FAILURES, return_values

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "plugins"
COLLECTION = "ansible_collections.clouddb.control"
MODULES = sorted(path.stem for path in (PLUGINS / "modules").glob("[!_]*.py"))
# Only the role uses these. They have tests of their own.
ROTATION_MODULES = {"api_key_deployment", "api_key_rotation"}
OLDEST_REQUESTS = re.escape(OLDEST_LIBRARIES[0].removeprefix("requests==").rpartition(".")[0])
LINK = re.compile(
    r"https://(?:github\.com/clouddb/ansible-control/(?:blob|tree)/main|clouddb\.github\.io/ansible-control(?:/stable)?)/([^\s)>`\"'#]*)"
)
SOURCES_OF_PAGES = {
    r"docsite/(\w+)\.html": r"docs/docsite/rst/\1.rst",
    r"(\w+)_module\.html": r"plugins/modules/\1.py",
    r"(\w+)_role\.html": r"roles/\1",
    r"(\w+)_inventory\.html": r"plugins/inventory/\1.py",
    r"(\w+)_lookup\.html": r"plugins/lookup/\1.py",
}
each_module = pytest.mark.parametrize("name", MODULES)


def read_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def module(name: str) -> Any:
    return importlib.import_module(f"{COLLECTION}.plugins.modules.{name}")


def module_arguments(name: str) -> Mapping[str, Any]:
    """The arguments that AnsibleModule gets from the module and its base class."""
    return arguments_of(module(name))


@functools.cache
def documentation(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load(module(name).DOCUMENTATION))


def texts() -> Iterator[tuple[Path, str]]:
    """The files that users read, or that refer to what they read."""
    folders = ("docs", "examples", "extensions", "playbooks", "plugins", "roles")
    for path in (*ROOT.glob("*.md"), *(path for folder in folders for path in (ROOT / folder).rglob("*.*"))):
        if path.suffix in (".md", ".py", ".rst", ".yml"):
            yield path, path.read_text(encoding="utf-8")


# Options


@pytest.mark.parametrize("name", sorted(path.stem for path in (PLUGINS / "filter").glob("*.py")))
def test_documentation_matches_the_parameters_of_a_filter(name: str) -> None:
    file = importlib.import_module(f"{COLLECTION}.plugins.filter.{name}")
    options = yaml.safe_load(file.DOCUMENTATION)["options"]
    [function] = file.FilterModule().filters().values()
    parameters = list(inspect.signature(function).parameters.values())
    assert [parameter.name for parameter in parameters[1:]] == [option for option in options if option != "_input"]
    for parameter in parameters[1:]:
        otherwise = options[parameter.name].get("default", inspect.Parameter.empty)
        assert (parameter.default, parameter.name) == (otherwise, parameter.name)


@pytest.mark.parametrize("part", ["DOCUMENTATION", "PLUGIN"])
def test_doc_fragment_matches_the_connection_options(part: str) -> None:
    text = getattr(connection_fragment.ModuleDocFragment, part)
    documented = yaml.safe_load(text)["options"]
    assert list(documented) == list(CONNECTION_OPTIONS)
    # Plugins other than modules have no module_defaults.
    assert ("module_defaults" in text) == (part == "DOCUMENTATION")
    for name, option in CONNECTION_OPTIONS.items():
        described = " ".join(documented[name]["description"])
        # The environment variables that it falls back to.
        variables = option.get("fallback", (None, []))[1]
        for field in ("type", "default"):
            assert documented[name].get(field) == option.get(field), f"{field} of {name}"
        # Ansible's message about a required option would not name the environment variable.
        assert not documented[name].get("required") and not option.get("required")
        assert ("One of them is required." in described) == bool(variables)
        assert re.findall(r"If not set, the environment variable E\((\w+)\) of the machine", described) == variables
        # Modules read the environment as their argument spec says, other plugins as their documentation says.
        named = [variable["name"] for variable in documented[name].get("env", [])]
        assert named == (variables if part == "PLUGIN" else [])


def test_tests_of_every_module_have_every_module() -> None:
    assert sorted([*map(name_of, dict(EACH_MODULE)), *ROTATION_MODULES]) == MODULES


def test_every_module_has_an_integration_target() -> None:
    """Named like the module, or with the module in the aliases, so that C(ansible-test integration module/NAME/) runs it."""
    targets = ROOT / "tests" / "integration" / "targets"
    aliases = {line for file in targets.glob("*/aliases") for line in file.read_text(encoding="utf-8").split()}
    assert {*MODULES} <= aliases | {folder.name for folder in targets.iterdir()}


# Metadata


@each_module
def test_modules_of_the_rotation_are_internal_everywhere(name: str) -> None:
    """In C(ansible-doc), in the list of its modules, in the action group and on the site."""
    is_internal = name in ROTATION_MODULES
    described = documentation(name)
    internal = (ROOT / "meta/runtime.yml").read_text().partition("  wait:")[0].partition("# Internal")[2]
    pages = re.search(r"^INTERNAL = (.+)$", (ROOT / "docs/site/build.py").read_text(), re.MULTILINE)
    assert pages
    assert [
        described["short_description"].startswith("Internal: "),
        described["description"][0].startswith("Internal to the role "),
        f"- {name}\n" in internal,
        f'"{name}_module"' in pages[1],
    ] == [is_internal] * 4


@pytest.mark.parametrize(
    ("group", "options"),
    [("all", set()), ("wait", {"progress"}), ("project", {"project"}), ("branch", {"project", "branch"})],
)
def test_a_group_has_every_module_that_takes_its_options(group: str, options: set[str]) -> None:
    """Other modules would refuse them, and fail."""
    taking = [name for name in MODULES if options <= module_arguments(name)["argument_spec"].keys()]
    assert sorted(read_yaml("meta/runtime.yml")["action_groups"][group]) == taking
    assert group == "all" or ROTATION_MODULES.isdisjoint(taking)


def test_an_option_with_an_id_may_lack_a_value_in_check_mode() -> None:
    """An earlier task may create what it names; no task creates an organization or a region."""
    users = {option for name in {*MODULES} - ROTATION_MODULES for option in module_arguments(name)["argument_spec"]}
    ids = {option for option in users if re.fullmatch(r"id|\w+_id|operations", option)} - {"org_id", "region_id"}
    rows = [row for row in vars(kinds).values() if isinstance(row, kinds.Kind)]
    # It is an option of other modules, too. branch_restore has it among the C(ids) of ControlModule.
    assert ids.union(*(row.parents + row.references for row in rows)) - {"name"} == MAY_LACK_VALUE


@each_module
def test_modules_with_progress_have_its_action_plugin(name: str) -> None:
    """A redirect in meta/runtime.yml would not do: ansible-lint would propose the name of another module."""
    path = PLUGINS / "action" / f"{name}.py"
    shows_progress = path.exists() and "ProgressAction" in path.read_text(encoding="utf-8")
    assert shows_progress == ("progress" in module_arguments(name)["argument_spec"])


@each_module
def test_module_is_recognized_by_mitogen_and_names_the_python_it_needs(name: str) -> None:
    """mitogen takes a module with only relative imports for a script. All that precedes the check in _errors.py runs with Python 3.6."""
    source = inspect.getsource(module(name))
    first = re.search(
        rf"^from (?:{COLLECTION}\.plugins\.module_utils\.(\w+)|.*ansible|\.|__future__)", source, re.MULTILINE
    )
    assert first and first[1] in ("_module", "_file_module")
    for file in ("_errors", "_module", first[1]):
        source += (PLUGINS / "module_utils" / f"{file}.py").read_text(encoding="utf-8")
    assert "__future__" not in source
    ast.parse(source, feature_version=(3, 6))


def test_guide_lists_every_kind_of_failure() -> None:
    page = (ROOT / "docs/docsite/rst/failure_kinds.rst").read_text()
    listed = re.findall(r"   \* - ``(\w+)``", page)
    assert listed == list(get_args(FailureKind))
    assert {*re.findall(r"``(\w+)``", page)} > OF_FAILURES - {"kind"}


@each_module
def test_return_values_are_no_methods_of_dictionaries(name: str) -> None:
    """In a template, C(result.keys) would be the method. Only newer releases of ansible-test find this."""

    def names(documented: dict[str, Any]) -> set[str]:
        return {*documented}.union(*(names(value.get("contains", {})) for value in documented.values()))

    assert names(return_values(module(name))) & {*dir(dict)} == set()


@each_module
def test_every_module_documents_its_attributes(name: str) -> None:
    fragments, own = documentation(name)["extends_documentation_fragment"], documentation(name).get("attributes", {})
    shared = {*re.findall(r"clouddb\.control\.attributes\b\.?(\w*)", " ".join(fragments))}
    assert "" in shared and (shared & {"changes", "info"} or {"check_mode", "diff_mode"} <= own.keys())
    assert "membership:\n      - clouddb.control.all\n" in ModuleDocFragment.DOCUMENTATION


def test_version_in_the_user_agent_matches_galaxy_yml() -> None:
    assert read_yaml("galaxy.yml")["version"] == COLLECTION_VERSION


def test_metadata_names_the_oldest_supported_versions() -> None:
    ansible = min(ANSIBLE_CORE, key=number)
    assert read_yaml("meta/runtime.yml")["requires_ansible"] == f">={ansible}.0"
    assert {
        read_yaml(str(role))["galaxy_info"]["min_ansible_version"] for role in ROOT.glob("roles/*/meta/main.yml")
    } == {ansible}
    assert read_yaml("tests/config.yml")["modules"]["python_requires"] == f">={min(TARGET_PYTHON, key=number)}"


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_supported_versions_lists_the_tested_versions() -> None:
    text = (ROOT / "docs/docsite/rst/support.rst").read_text(encoding="utf-8")
    rows = re.findall(r"^   \* - (2\.\d+)\n     - (.+)$", text, re.MULTILINE)
    assert rows == [(ansible, ", ".join(pythons)) for ansible, pythons in ANSIBLE_CORE.items()]
    *others, last = TARGET_PYTHON
    assert f"Modules run on hosts with Python {', '.join(others)} and {last}." in " ".join(text.split())


def test_documents_and_tools_name_the_supported_versions() -> None:
    """In whatever words: ``3.10 to 3.15``, ``3.9_to_3.15``, ``(3, 10) <= version <= (3, 15)``."""
    controllers = {python for of_core in ANSIBLE_CORE.values() for python in of_core}
    cores, pythons, newest = [*ANSIBLE_CORE], [*TARGET_PYTHON], max(controllers, key=number)
    ranges = {(cores[0], cores[-1]), (pythons[0], pythons[-1]), (min(controllers, key=number), newest)}
    named = set()
    for path in ("README.md", "CONTRIBUTING.md", "Makefile", *map(str, (ROOT / "docs").rglob("*.rst"))):
        text = re.sub(r"\((\d), (\d+)\)", r"\1.\2", (ROOT / path).read_text(encoding="utf-8"))
        named |= set(re.findall(r"\b(2\.16|3\.\d+)(?:[\s_]to[\s_]| <= .{1,30} <= )([23]\.\d+)\b", text))
    assert named == ranges


def test_make_test_uses_the_newest_ansible_core() -> None:
    """That of the newest Python in requirements.txt; a release candidate as long as there is no release."""
    lines = re.findall(r"^ansible-core >= (\S+), < (\S+) ; (.+)$", (ROOT / "tests/requirements.txt").read_text(), re.M)
    core, [oldest_python, *_others] = list(ANSIBLE_CORE.items())[-1]
    assert [line for line in lines if line[0].startswith(core)] == [
        (lines[-1][0], f"2.{number(core)[1] + 1}", f'python_version >= "{oldest_python}"')
    ]


@pytest.mark.parametrize(
    "path", ["plugins/doc_fragments/connection.py", "meta/ee-requirements.txt", "tests/unit/requirements.txt"]
)
def test_requirements_name_the_oldest_requests(path: str) -> None:
    assert re.search(rf"requests ?>= ?{OLDEST_REQUESTS}\n", (ROOT / path).read_text(encoding="utf-8"))


def test_tested_pythons_match_ansible_core() -> None:
    version = ".".join(ansible_version.split(".")[:2])
    known = importlib.import_module("ansible_test._util.target.common.constants")
    assert ANSIBLE_CORE[version] == known.CONTROLLER_PYTHON_VERSIONS


def test_workflows_cover_every_supported_version() -> None:
    jobs = {name: read_yaml(f".github/workflows/{name}.yml")["jobs"] for name in ("test", "nightly", "versions")}

    def pythons(job: dict[str, Any]) -> set[str]:
        [step] = [step for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python@")]
        installed = step["with"]["python-version"].split()
        # make uses the last one, as python3.
        assert installed[-1] == "3.11"
        return set(installed)

    releases = list(ANSIBLE_CORE)
    assert json.loads(jobs["test"]["oldest-and-newest"]["with"]["ansible-core"]) == [releases[0], releases[-1]]
    assert json.loads(jobs["nightly"]["versions"]["with"]["ansible-core"]) == releases
    assert pythons(jobs["versions"]["matrix"]) == {python for of_core in ANSIBLE_CORE.values() for python in of_core}
    assert pythons(jobs["nightly"]["targets"]) == set(TARGET_PYTHON)


def test_a_release_is_built_after_the_tests_of_a_pull_request() -> None:
    jobs = read_yaml(".github/workflows/release.yml")["jobs"]
    assert (jobs["tests"]["uses"], jobs["tarball"]["needs"]) == ("./.github/workflows/test.yml", "tests")
    assert "workflow_call" in read_yaml(".github/workflows/test.yml")[True]  # YAML 1.1 reads "on" so


def test_workflows_name_the_commits_of_actions() -> None:
    """The owner of an action can move its tags."""
    workflows = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    lines = [line for line in workflows.splitlines() if "uses:" in line and "./.github" not in line]
    assert len(lines) > 5
    assert [line for line in lines if not re.search(r"@[0-9a-f]{40}  # v[\d.]+$", line)] == []


def test_site_lists_every_guide() -> None:
    shown = {guide for section in read_yaml("docs/docsite/extra-docs.yml")["sections"] for guide in section["toctree"]}
    assert shown == {path.stem for path in (ROOT / "docs" / "docsite" / "rst").glob("*.rst")}


def test_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs/docsite/rst/architecture.rst").read_text(encoding="utf-8")
    existing = {path.name for folder in ("plugins", "extensions") for path in (ROOT / folder).rglob("*.py")}
    assert set(re.findall(r"``[\w/]*?(\w+\.py)``", text)) - existing == set()


def test_links_to_the_repository_and_the_site_have_targets() -> None:
    """Sphinx checks only the links between the pages of the site."""
    targets = {target for _path, text in texts() for target in LINK.findall(text)}
    for page, source in SOURCES_OF_PAGES.items():
        targets = {re.sub(f"^{page}$", source, target) for target in targets}
    assert {target for target in targets if not (ROOT / target).exists()} == set()


def test_labels_of_loops_hold_no_text_of_others() -> None:
    """Ansible prints labels as they are, with the escape sequences of a name."""
    read = [(path.name, text) for path, text in texts() if ROOT / "extensions" not in path.parents]
    labels = [(name, label) for name, text in read for label in re.findall(r"\blabel: (.*\{\{.*)", text)]
    assert len(labels) > 5
    allowed = r"item\.(item\.)?(id|total|secret_name)"
    assert [entry for entry in labels if not re.fullmatch(rf'"\{{\{{ (?:{allowed}) \}}\}}[ a-z]*"', entry[1])] == []


def test_readme_has_the_sections_that_collections_must_have() -> None:
    """Those of Ansible's inclusion and certification requirements."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    required = {"Communication", "Installation", "License", "Release notes", "Requirements", "Support", "Testing"}
    assert {*required, "Use cases"} - set(re.findall(r"^## (.+)$", text, re.MULTILINE)) == set()
    assert "https://forum.ansible.com/" in text and "Create issue" in text


def test_readme_lists_the_plugins_and_roles() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    roles = {path.parents[1].name for path in ROOT.glob("roles/*/tasks/main.yml")}
    lookups = {path.stem for path in (PLUGINS / "lookup").glob("*.py")}
    names = {*MODULES, *roles, *lookups, "projects", "operations"} - ROTATION_MODULES
    assert {name for name in names if f"`{name}`" not in text} == set()


# The direction of dependency: modules and plugins, domain logic, client, requests


SHARED = {"_bare_key", "_clock", "_errors", "_files", "_options", "_patterns", "_secrets", "_timestamps", "_untrusted"}
HTTP = {"_http", "_parallel"}
DOMAIN = {"_addresses", "_keys", "_lists", "_operations", "_policy", "_projects", "_resources", "_rotation"}
MODULE_UTILS = {
    path.stem for path in (PLUGINS / "module_utils").iterdir() if path.name not in ("__init__.py", "__pycache__")
}

# Functions of Ansible without state.
PURE = "ansible.module_utils.common.dict_transformations"

# What each part of module_utils may import of it. Only _module imports more of Ansible than PURE.
ALLOWED = {
    **dict.fromkeys(SHARED, SHARED),
    **dict.fromkeys(HTTP, SHARED | HTTP),
    **dict.fromkeys(DOMAIN, SHARED | HTTP | DOMAIN),
    "_module": SHARED | HTTP,
    "_file_module": SHARED | {"_module"},
}


@functools.cache
def imports(path: Path) -> set[str]:
    """The full names of the modules that a file imports; of this collection, from C(plugins) on."""
    package = ("plugins", *path.relative_to(PLUGINS).parent.parts)
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])]).removeprefix(f"{COLLECTION}.")
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def parts_of(path: Path, package: str = "module_utils") -> set[str]:
    """The files and folders of module_utils (or another package of plugins) that a file imports from."""
    return {name.split(".")[2] for name in imports(path) if name.startswith(f"plugins.{package}.")}


def foreign(path: Path, *packages: str) -> set[str]:
    return {name for name in imports(path) if name.split(".")[0] in packages}


def files_of(part: str) -> list[Path]:
    folder = PLUGINS / "module_utils"
    return [folder / f"{part}.py"] if (folder / f"{part}.py").exists() else sorted((folder / part).rglob("*.py"))


def test_every_part_of_module_utils_has_a_layer() -> None:
    assert set(ALLOWED) == MODULE_UTILS


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_imports_point_down(part: str) -> None:
    for path in files_of(part):
        assert parts_of(path) <= ALLOWED[part], path
        assert parts_of(path, "plugin_utils") == set(), path
        of_ansible = {name for name in foreign(path, "ansible") if not name.startswith(PURE)}
        assert part == "_module" or not of_ansible, path


def test_requests_is_imported_in_one_place() -> None:
    importing = {path.name for path in PLUGINS.rglob("*.py") if foreign(path, "requests", "urllib3")}
    # failures.py classifies the errors of requests that session.py raises.
    assert importing == {"session.py", "failures.py"}


@each_module
def test_modules_import_no_other_module_and_no_transport(name: str) -> None:
    imported = imports(PLUGINS / "modules" / f"{name}.py")
    assert not any(found.startswith(("plugins.modules", "plugins.module_utils._http.session")) for found in imported)
