# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each project has a host name of its own, whatever names and ids the service returns."""

from __future__ import annotations

import pytest

from ansible_collections.clouddb.control.plugins.plugin_utils._host_names import host_names


@pytest.mark.parametrize(
    "projects, names",
    [
        ([("a", "x"), ("b", "x")], ["x-a", "x-b"]),
        ([("a", ""), ("b", None)], ["a", "b"]),
        ([("a", "x"), ("b", "x"), ("c", "x-a"), ("d", "a")], ["x-a", "x-b", "x-a-c", "a-d"]),
        ([("a", "x y"), ("b", "x{y")], ["x_y-a", "x_y-b"]),
        ([("a", "localhost"), ("b", "all")], ["localhost-a", "all-b"]),
        ([("a", "ungrouped"), ("b", "127.0.0.1"), ("c", "::1")], ["ungrouped-a", "127.0.0.1-b", "__1"]),
        ([("a", ".."), ("b", "."), ("c", "日本"), ("d", ["x"])], ["a", "b", "c", "d"]),
        ([("a", "../web"), ("b", "-oX=y"), ("c", ".web")], ["_._web", "_oX_y", "_web"]),
        ([("a", "web.yml"), ("b", "db.JSON"), ("c", "x.yaml.yaml")], ["web_yml", "db_JSON", "x.yaml_yaml"]),
        ([("a", "Ünï"), ("b", "U\u0308ni\u0308"), ("c", "x\n")], ["_n_", "U_ni_", "x_"]),
        ([("a", "x" * 5000), ("b", "x" * 4000)], ["x" * 100 + "-a", "x" * 100 + "-b"]),
        ([("a", "x"), ("b", "x"), ("c", "X-A")], ["x-a", "x-b", "X-A-c"]),
        ([("localhost", "x"), ("b", "x"), ("c", "x-localhost")], ["x-localhost", "x-b", "x-localhost-c"]),
        ([("a", "web"), ("b", "Web"), ("c", "GROUP")], ["web-a", "Web-b", "GROUP-c"]),
        ([("group", "x"), ("b", "x"), ("c", "x-group")], ["x-group", "x-b", "x-group-c"]),
    ],
)
def test_host_names_are_unique(projects: list[tuple[str, str]], names: list[str]) -> None:
    result = host_names(
        [{"id": project_id, "name": name} for project_id, name in projects], ["name", "id"], ["group"], {}
    )

    assert list(result.values()) == names


def test_the_id_is_a_name_even_if_it_is_not_preferred() -> None:
    assert host_names([{"id": "a", "name": None}], ["name"], [], {}) == {"a": "a"}


@pytest.mark.parametrize(
    "ids, hashes",
    [
        (("-a", "_a"), ("c274891790345c56", "34fb716034edaa88")),
        (("y" * 120, "y" * 121), ("93dd18da6780c736", "92dd06142f0237d7")),
        (("group", "Group"), ("ad936fcbed631fa6", "34ca0e76608842ff")),
        (("localhost", "LOCALHOST"), ("49960de5880e8c68", "627f3e8e454bb465")),
    ],
)
def test_ids_that_are_the_same_host_name(ids: tuple[str, str], hashes: tuple[str, str]) -> None:
    """They get the beginning of a hash, which stays the same in later versions."""
    names = list(host_names([{"id": project_id} for project_id in ids], ["id"], ["group"], {}).values())

    assert names == [f"{each[:100].replace('-', '_')}-{digest}" for each, digest in zip(ids, hashes)]


@pytest.mark.parametrize(
    "projects, earlier, names",
    [
        ([("a", "x")], {"X": {"b"}}, ["x-a"]),
        ([("a", "x")], {"x": {"a", "region"}}, ["x"]),
        ([("a", "x"), ("b", "x")], {"x": {"b"}}, ["x-a", "x"]),
        ([("a", "x")], {"x-a": {"a"}}, ["x-a"]),
        ([("a", "x")], {"x": {"b"}, "x-a": {"c"}}, ["a"]),
        ([("a", "x")], {"other": {"a"}}, ["x"]),
        ([("a", "x")], {"x": {"a"}, "X": {"b"}}, ["x-a"]),
        ([("a", "x"), ("b", "x-a")], {"x-a": {"a"}}, ["x-a", "x-a-b"]),
        ([("a", "group")], {"group": {"a"}}, ["group-a"]),
        ([("a", "x"), ("b", "y")], {"x": {"a", "b"}}, ["x", "y"]),
    ],
)
def test_names_of_other_projects_in_earlier_sources(
    projects: list[tuple[str, str]], earlier: dict[str, set[str]], names: list[str]
) -> None:
    listed = [{"id": project_id, "name": name} for project_id, name in projects]

    assert list(host_names(listed, ["name", "id"], ["group"], earlier).values()) == names
