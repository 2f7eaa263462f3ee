# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The execution environment, up to the build of the image, which needs a container runtime."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from jobs import Controller
from supported import ANSIBLE_CORE


def test_ansible_builder_creates_a_build_context(controller: Controller, tmp_path: Path) -> None:
    options = ("--context", str(tmp_path), "--output-filename", "Containerfile")
    definition = str(controller.files / "execution-environment.yml")
    controller.run("ansible-builder", "create", "--file", definition, *options)
    image = (tmp_path / "Containerfile").read_text(encoding="utf-8")
    arguments = dict(re.findall(r'^ARG (\w+)="(.*)"$', image, re.MULTILINE))
    assert arguments["EE_BASE_IMAGE"] == "quay.io/centos/centos:stream10"
    assert arguments["ANSIBLE_INSTALL_REFS"] == f"ansible-core>={next(iter(ANSIBLE_CORE))} ansible-runner"
    # The base image has no Python.
    assert arguments["PYPKG"] == "python3" and "RUN $PKGMGR install $PYPKG -y" in image
    packages = (tmp_path / "_build" / "bindep.txt").read_text(encoding="utf-8")
    assert packages.split() == ["openssh-clients", "[platform:rpm]"]
    galaxy = yaml.safe_load((tmp_path / "_build" / "requirements.yml").read_text(encoding="utf-8"))
    assert [each["name"] for each in galaxy["collections"]] == ["clouddb.control", "awx.awx"]


def test_ansible_builder_finds_the_requirements_of_the_collection(controller: Controller, tmp_path: Path) -> None:
    collections = str(controller.collection.parents[2])
    pip, bindep = tmp_path / "pip", tmp_path / "bindep"
    options = ("--write-pip", str(pip), "--write-bindep", str(bindep))
    controller.run("ansible-builder", "introspect", collections, *options)
    lines = pip.read_text(encoding="utf-8").splitlines()
    assert [line.partition("#")[0].strip() for line in lines] == ["requests>=2.25"]
    assert not bindep.exists()
