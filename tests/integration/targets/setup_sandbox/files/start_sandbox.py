# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a sandbox like the role, but in one task: ``start_sandbox.py ROLE FOLDER``, the seed on standard input.

FOLDER gets a subfolder ``files`` for the target, and ``sandbox``. Prints what background.py prints.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Start the sandbox with the Python that runs this, and its packages."""
    role, folder = Path(sys.argv[1]), Path(sys.argv[2])
    (folder / "files").mkdir(mode=0o700)
    server = role / "files"
    wanted = {
        "state": "started",
        "dir": str(folder / "sandbox"),
        "virtualenv": sys.prefix,
        "seed": sys.stdin.read(),
        "files": {
            str(path.relative_to(server)): path.read_text("utf-8") for path in server.glob("clouddb_sandbox/**/*.py")
        },
    }
    subprocess.run([sys.executable, str(server / "background.py")], check=True, input=json.dumps(wanted), text=True)


if __name__ == "__main__":
    main()
