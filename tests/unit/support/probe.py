# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that ends in many ways, and returns what it sees of its process; test_both_ways.py adds it to a copy of the collection."""

from __future__ import annotations

import importlib
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule

# Those that a shell sets.
OF_SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}
SIGNALS = ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGINT", "SIGPIPE", "SIGTERM", "SIGUSR1")


def _process(module: Any) -> None:
    os.umask(mask := os.umask(0))
    module.exit_json(
        environment={name: value for name, value in os.environ.items() if name not in OF_SHELL},
        directory=os.getcwd(),
        mask=mask,
        signals={name: str(signal.getsignal(getattr(signal, name))) for name in SIGNALS},
        blocked=[str(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        stdin=sys.stdin.read(),
        encodings=[sys.stdout.encoding.lower(), sys.stderr.encoding.lower(), sys.stderr.errors],
        file_names=sys.getfilesystemencoding(),
        time=[time.tzname, time.strftime("%H", time.gmtime(0)), time.strftime("%H", time.localtime(0))],
        timeout=socket.getdefaulttimeout(),
        log_level=logging.getLogger().getEffectiveLevel(),
        session=os.getsid(0) == os.getpgid(0),
        limit=resource.getrlimit(resource.RLIMIT_NOFILE),
        niceness=os.nice(0),
        python=[sys.executable, sys.version],
        options={
            name: value
            for name, value in vars(module).items()
            # As with pipelining, there is no directory for the files of the module.
            if name.startswith("_") and name != "_tmpdir" and isinstance(value, (bool, str, int))
        },
    )


def _noise(module: Any) -> None:
    print("noise before")
    print("noise on stderr", file=sys.stderr)
    sys.stdout.flush()
    os.system("echo noise of a child")


def _noise_after(module: Any) -> None:
    print('{"changed": false}\nnoise after')
    sys.exit()


def _warnings(module: Any) -> None:
    module.warn("a warning")
    module.deprecate("an old option", version="9.0.0", collection_name="clouddb.control")


# By the option C(how).
WAYS: dict[str, Callable[[Any], object]] = {
    "process": _process,
    "values": lambda module: None,
    "warnings": _warnings,
    "secret": lambda module: module.exit_json(
        changed=True, found=f"the secret is {module.params['secret']}", diff={"before": "a", "after": "b"}
    ),
    "failure": lambda module: module.fail_json(msg="It failed.", stdout="one\ntwo", rc=4),
    "exception": lambda module: int("outside of run()"),
    "missing_import": lambda module: importlib.import_module("missing_library"),
    "exit": lambda module: sys.exit(3),
    "exit_with_text": lambda module: sys.exit("the end"),
    "exit_without_result": lambda module: sys.exit(),
    "kill": lambda module: os.kill(os.getpid(), signal.SIGKILL),
    "noise": _noise,
    "noise_after": _noise_after,
    "bytes": lambda module: os.write(1, b"\xff\xfe\n"),
    "slow": lambda module: time.sleep(3),
    "nothing_to_change": lambda module: module.exit_json(
        changed=False, ansible_facts={"fact": "{{ 1 + 1 }}"}, skipped=True
    ),
}


def main() -> None:
    """End in the way of the option C(how), or return the option C(value)."""
    options: dict[str, dict[str, Any]] = {
        "how": {"required": True},
        "secret": {"no_log": True},
        "value": {"type": "raw"},
    }
    options["old"] = {"removed_in_version": "9.0.0"}
    module = AnsibleModule(options, supports_check_mode=True)
    WAYS[module.params["how"]](module)
    module.exit_json(changed=False, value=module.params["value"])


if __name__ == "__main__":
    main()
