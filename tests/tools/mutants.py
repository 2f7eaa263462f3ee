# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has mutmut change the functions of modules and module_utils in small ways, each of which a unit test has to notice.

``mutants.py [PATTERN...]``: patterns such as ``*.paging.*`` narrow it. What survives is written to .build/mutants.diff.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from stage import CHECKOUT, Stage, stage

SURVIVORS = CHECKOUT / ".build" / "mutants.diff"
WANTED = 90

# mutmut collects the tests twice in one process, and pytest escapes the ids of tests anew each time: so not at all.
# The imports of a mutated file are not those of the file, which is what the test that is left out looks at.
CONFIG = """\
[tool.mutmut]
source_paths = ["ansible_collections"]
only_mutate = ["ansible_collections/clouddb/control/plugins/modules/*.py", "ansible_collections/clouddb/control/plugins/module_utils/*.py"]
pytest_add_cli_args_test_selection = [
    "ansible_collections/clouddb/control/tests/unit/plugins/modules",
    "ansible_collections/clouddb/control/tests/unit/plugins/module_utils",
    "ansible_collections/clouddb/control/tests/unit/extensions",
    "ansible_collections/clouddb/control/tests/unit/test_consistency.py",
]
pytest_add_cli_args = [
    "-p", "no:cacheprovider", "-k", "not test_the_client_knows_nothing",
    "-o", "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true",
]
timeout_multiplier = 6
timeout_constant = 15
use_git_change_detection = false
"""


def mutmut(staged: Stage, *arguments: str) -> list[str]:
    """What a command of mutmut says."""
    command = [str(staged.bin / "python"), "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=staged.root, env=staged.env, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def main() -> int:
    """Run it, and say how many of the mutants were noticed."""
    with stage() as staged:
        (staged.root / "pyproject.toml").write_text(CONFIG, encoding="utf-8")
        run = [str(staged.bin / "python"), "-m", "mutmut", "run", "--max-children", "2", *sys.argv[1:]]
        if subprocess.run(run, cwd=staged.root, env=staged.env, check=False).returncode:
            return 1
        results = dict(line.strip().rsplit(": ", 1) for line in mutmut(staged, "results", "--all", "true") if ": " in line)
        counts = Counter(results.values())
        counts.pop("not checked", None)
        left = [name for name, status in results.items() if status in ("survived", "no tests", "suspicious")]
        SURVIVORS.parent.mkdir(exist_ok=True)
        SURVIVORS.write_text("\n".join(line for name in left for line in (f"# {name}", *mutmut(staged, "show", name))), encoding="utf-8")
    if not counts:
        print("nothing ran")
        return 1
    score = 100 * (1 - len(left) / counts.total())
    print(f"{counts.total()} mutants: {', '.join(f'{count} {status}' for status, count in counts.most_common())}")
    print(f"{score:.1f} % were noticed, {WANTED} % are wanted; the others are in {SURVIVORS.relative_to(CHECKOUT)}")
    return score < WANTED


if __name__ == "__main__":
    sys.exit(main())
