# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a module that only reads loads: each file takes about a millisecond of every task, and more on another host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.modules import project_info

MODULES = Path(project_info.__file__).absolute().parent
ROOT = MODULES.parents[4]
# connection_info also writes files; operation_info also knows statuses and times. The others load 19.
MAX_FILES = {"connection_info": 24, "operation_info": 22}
# Forks of one process, which has loaded what is not ours, import a module each.
PROGRAM = """
import importlib, json, os, sys
import requests
from ansible.module_utils import basic
for name in sys.argv[1:]:
    if not os.fork():
        importlib.import_module("ansible_collections.clouddb.control.plugins.modules." + name)
        files = {each: module.__file__ for each, module in sys.modules.items() if ".module_utils." in each and "clouddb" in each}
        loaded = [each.partition(".module_utils.")[2] for each, file in files.items() if os.path.getsize(file or os.devnull)]
        print(json.dumps([name, loaded]), flush=True)
        os._exit(0)
    os.wait()
"""
READING = sorted(path.stem for path in MODULES.glob("*_info.py"))


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """The files with code that each of these modules loads."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    program = [sys.executable, "-c", PROGRAM, *READING]
    done = subprocess.run(program, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("name", READING)
def test_a_module_that_only_reads_loads_no_more_than_it_needs(loaded: dict[str, list[str]], name: str) -> None:
    assert len(loaded[name]) <= MAX_FILES.get(name, 19), loaded[name]
    # The engine changes resources, and the text of failures is for those who have one.
    assert {"_resources.engine", "_resources.state", "_http.failures"}.isdisjoint(loaded[name])
    assert name != "project_info" or "_timestamps" not in loaded[name]
