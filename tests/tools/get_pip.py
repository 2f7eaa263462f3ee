# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces the script get-pip.py that ansible-test downloads, for networks that only reach a package index.

Accepts the same arguments: ``get_pip.py pip==VERSION --no-setuptools --no-wheel``.
"""

from __future__ import annotations

import runpy
import subprocess
import sys

subprocess.run([sys.executable, "-m", "ensurepip"], check=True, stdout=subprocess.DEVNULL)
sys.argv[1:] = ["install", "--upgrade", *(a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel"))]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
