# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the mutation tests of the plugins and the event source: ``mutants.py [PATH...]``.

A path, or a part of one such as ``_http/client`` or ``_keys``, limits the run to these files. Mutants that no unit test
detects are written to .build/mutants.diff. Results are kept in .build/mutants.jsonl, so an interrupted run continues.
"""

from __future__ import annotations

import sys

from workspace import CHECKOUT, exit_on_signals, temporary_workspace

FOLDERS = ("plugins", "extensions/eda/plugins/event_source")
BUILD = CHECKOUT / ".build"
REQUIRED_SCORE = 95


def select(names: list[str]) -> list[str]:
    """The files to change; with names, those whose path contains one."""
    files = sorted(
        str(path.relative_to(CHECKOUT))
        for folder in FOLDERS
        for path in (CHECKOUT / folder).rglob("*.py")
        if path.stat().st_size
    )
    paths = {file: f"/{file.removesuffix('.py')}/" for file in files}
    parts = [f"/{name.removesuffix('.py').strip('/')}/" for name in names]
    if unknown := [part.strip("/") for part in parts if not any(part in path for path in paths.values())]:
        sys.exit(f"No file matches {', '.join(unknown)}. The files are:\n" + "\n".join(files))
    return [file for file, path in paths.items() if not parts or any(part in path for part in parts)]


def main() -> int:
    """Run the mutants of the selected files in a workspace."""
    files = select(sys.argv[1:])
    exit_on_signals()
    BUILD.mkdir(exist_ok=True)
    outputs = [str(BUILD / "mutants.jsonl"), str(BUILD / "mutants.diff")]
    arguments = ["tests/mutants/run.py", *outputs, str(REQUIRED_SCORE), *files]
    with temporary_workspace() as workspace, workspace.start("python", *arguments) as process:
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
