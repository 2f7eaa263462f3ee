# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a sandbox like the role, but in one task: ``start_sandbox.py ROLE FOLDER``, the seed on standard input.

FOLDER gets a subfolder ``files`` for the target, and ``sandbox``. Prints the sandbox's address and key as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Start the sandbox with the Python that runs this."""
    role, folder = Path(sys.argv[1]), Path(sys.argv[2])
    sandbox = folder / "sandbox"
    (folder / "files").mkdir(mode=0o700)
    background = [sys.executable, str(role / "files" / "background.py")]
    subprocess.run([*background, "create", str(sandbox)], check=True, stdout=subprocess.DEVNULL)
    files = [role / "files" / "background.py", *(role / "files" / "clouddb_sandbox").rglob("*.py")]
    texts = {str(path.relative_to(role / "files")): path.read_text(encoding="utf-8") for path in files}
    (sandbox / "server.json").write_text(json.dumps(texts), encoding="utf-8")
    (sandbox / "seed.yml").write_text(sys.stdin.read(), encoding="utf-8")
    run = subprocess.run([*background, "start", str(sandbox)], check=True, stdout=subprocess.PIPE, text=True)
    started = json.loads(run.stdout)
    key = Path(started["api_key_file"]).read_text(encoding="utf-8").strip()
    print(json.dumps({"base_url": started["base_url"], "api_key": key}))


if __name__ == "__main__":
    main()
