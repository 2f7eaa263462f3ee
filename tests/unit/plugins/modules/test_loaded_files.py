# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a module that only reads loads: each file takes about a millisecond of every task, and more on another host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.clouddb.control.plugins.modules import project_info

MODULES = Path(project_info.__file__).absolute().parent
ROOT = MODULES.parents[4]
MAX_FILES = 19
# connection_info also writes files; operation_info also knows statuses and times.
MORE = {"connection_info": 25, "operation_info": 22}
PROGRAM = """
import importlib, os, sys
importlib.import_module("ansible_collections.clouddb.control.plugins.modules.{}")
for name, module in sys.modules.items():
    if ".module_utils." in name and "clouddb" in name and os.path.getsize(module.__file__ or os.devnull):
        print(name.partition(".module_utils.")[2])
"""


@pytest.mark.parametrize("name", sorted(path.stem for path in MODULES.glob("*_info.py")))
def test_a_module_that_only_reads_loads_no_more_than_it_needs(name: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    program = [sys.executable, "-c", PROGRAM.format(name)]
    done = subprocess.run(program, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    loaded = done.stdout.split()
    assert len(loaded) <= MORE.get(name, MAX_FILES), loaded
    # The engine changes resources, and the text of failures is for those who have one.
    assert {"_resources.engine", "_resources.state", "_http.failures"}.isdisjoint(loaded)
    assert name != "project_info" or "_timestamps" not in loaded
