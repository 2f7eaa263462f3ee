# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role account_report in a play, for the account of a sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from installation import run_program
from sandbox import Sandbox

COLLECTIONS = Path(__file__).resolve().parents[6]
PLAYBOOK = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles:
    - clouddb.control.account_report
"""


def run_role(
    folder: Path, service: Sandbox, variables: dict[str, Any], *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the role with these variables, options of ansible-playbook, and additional environment variables."""
    (folder / "play.yml").write_text(PLAYBOOK, encoding="utf-8")
    playbook = str(Path(sys.executable).with_name("ansible-playbook"))
    extra_vars = json.dumps({"ansible_python_interpreter": sys.executable, **variables})
    env = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "CLOUDDB_BASE_URL": service.base_url,
        "CLOUDDB_API_KEY": service.api_key,
        **environment,
    }
    return run_program([sys.executable, playbook, "play.yml", "-e", extra_vars, *options], folder, env=env)
