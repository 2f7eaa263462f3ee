# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has mutmut change the functions of modules and module_utils in small ways, each of which a unit test has to notice.

``mutants.py [NAME...]``: names of files, such as ``paging``, narrow it. What survives is written to .build/mutants.diff.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

from stage import CHECKOUT, Stage, leave_when_interrupted, stage

SURVIVORS = CHECKOUT / ".build" / "mutants.diff"
WANTED = 90
NOTICED = {"killed", "timeout", "segfault"}
LEFT = {"survived", "no tests", "suspicious"}

CONTROL = "ansible_collections/clouddb/control"
PLUGINS = [
    *(CHECKOUT / "plugins" / "modules").glob("[!_]*.py"),
    *(CHECKOUT / "plugins" / "module_utils").glob("[!_]*.py"),
]
FILES = {path.stem: path.relative_to(CHECKOUT) for path in PLUGINS if "def " in path.read_text(encoding="utf-8")}

# What every request goes through has to be noticed by tests of its own: all others use it as well, so they would take hours.
CLIENT = {
    "answer",
    "bounded_answer",
    "client",
    "connection",
    "errors",
    "options",
    "parallel",
    "schedule",
    "timestamps",
    "transport",
}
assert set(FILES) >= CLIENT
CLIENT_TESTS = ["plugins/module_utils", "plugins/security/test_tls.py"]
OTHER_TESTS = ["plugins/modules", "plugins/module_utils", "extensions", "test_consistency.py"]

# mutmut collects the tests twice in one process, and pytest escapes the ids of tests anew each time: so not at all.
# The imports of a mutated file are not those of the file, which is what the test that is left out looks at.
CONFIG = """\
[tool.mutmut]
source_paths = ["ansible_collections"]
only_mutate = {files}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = [
    "-p", "no:cacheprovider", "-k", "not test_the_client_knows_nothing",
    "-o", "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true",
]
timeout_multiplier = 3
timeout_constant = 5
use_git_change_detection = false
"""


def mutmut(staged: Stage, *arguments: str) -> list[str]:
    """What a command of mutmut says."""
    command = [str(staged.bin / "python"), "-m", "mutmut", *arguments]
    return subprocess.run(
        command, cwd=staged.root, env=staged.env, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()


def mutate(names: set[str], tests: list[str]) -> tuple[Counter[str], list[str]]:
    """How many mutants of these files ended how, and the differences of those that no test has noticed."""
    with stage() as staged:
        files = [f"{CONTROL}/{FILES[name]}" for name in sorted(names)]
        config = CONFIG.format(
            files=json.dumps(files), tests=json.dumps([f"{CONTROL}/tests/unit/{test}" for test in tests])
        )
        (staged.root / "pyproject.toml").write_text(config, encoding="utf-8")
        run = [str(staged.bin / "python"), "-m", "mutmut", "run", "--max-children", "2"]
        subprocess.run(run, cwd=staged.root, env=staged.env, check=True)
        results = dict(
            line.strip().rsplit(": ", 1) for line in mutmut(staged, "results", "--all", "true") if ": " in line
        )
        left = [name for name, status in results.items() if status in LEFT]
        return Counter(results.values()), [
            line for name in left for line in (f"# {name}", *mutmut(staged, "show", name))
        ]


def parts(names: set[str]) -> Iterator[tuple[set[str], list[str]]]:
    """The files of these names, with the tests for them."""
    for part, tests in ((names & CLIENT, CLIENT_TESTS), (names - CLIENT, OTHER_TESTS)):
        if part:
            yield part, tests


def main() -> int:
    """Run it, and say how many of the mutants were noticed."""
    names = set(sys.argv[1:]) or set(FILES)
    if names - set(FILES):
        sys.exit(f"There is no {', '.join(sorted(names - set(FILES)))}; there are {', '.join(sorted(FILES))}.")
    leave_when_interrupted()
    counts: Counter[str] = Counter()
    differences: list[str] = []
    for part, tests in parts(names):
        ended, left = mutate(part, tests)
        counts += ended
        differences += left
    SURVIVORS.parent.mkdir(exist_ok=True)
    SURVIVORS.write_text("\n".join(differences), encoding="utf-8")
    score = 100 * sum(counts[status] for status in NOTICED) / counts.total()
    print(f"{counts.total()} mutants: {', '.join(f'{count} {status}' for status, count in counts.most_common())}")
    print(f"{score:.1f} % were noticed, {WANTED} % are wanted; the others are in {SURVIVORS.relative_to(CHECKOUT)}")
    return score < WANTED or bool(set(counts) - NOTICED - LEFT)


if __name__ == "__main__":
    sys.exit(main())
