# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a playbook of the examples of modules, filters and READMEs, and the files that they need: ``documented_plays.py CHECKOUT FOLDER``."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import yaml

# What readers replace with their own values, and the values of the sandbox.
REPLACED = {
    "https://control.example.com/api/v2": os.environ["CLOUDDB_BASE_URL"],
    "org-sparkling-star-12345678": "org-sandbox-12345678",
}
FILES = {
    "hosts.ini": "[web]\nweb1 ansible_connection=local\n[myapp:children]\nweb\n",
    "my-report.html.j2": "{{ page | to_json }}",
}


def plays_of(texts: list[str]) -> list[dict[str, Any]]:
    """The plays in these texts. Tasks without a play continue the one before."""
    plays: list[dict[str, Any]] = []
    for text in texts:
        for example, own in REPLACED.items():
            text = text.replace(example, own)
        content = yaml.safe_load(text)
        if isinstance(content, list) and "hosts" in content[0]:
            plays += content
        elif isinstance(content, list):
            plays = plays or [{"hosts": "localhost", "gather_facts": False, "tasks": []}]
            plays[-1]["tasks"] += content
    return plays


def main() -> None:
    checkout, folder = map(Path, sys.argv[1:])
    # The examples of internal modules show the role that uses them, without its variables.
    modules = [path for path in checkout.glob("plugins/modules/*.py") if "Internal: " not in path.read_text("utf-8")]
    plugins = [*modules, *checkout.glob("plugins/filter/*.py")]
    blocks = [(path, r'^EXAMPLES = r"""\n(.*?)^"""') for path in sorted(plugins)]
    blocks += [
        (path, r"^```yaml\n(.*?)^```") for path in [checkout / "README.md", *sorted(checkout.glob("roles/*/README.md"))]
    ]
    texts = [re.findall(block, path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE) for path, block in blocks]
    plays = yaml.safe_dump([play for found in texts for play in plays_of(found)], sort_keys=False)
    for name, text in {"documented.yml": plays, **FILES}.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
