# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module in a fork of the task's own process, where Ansible would start the same Python for it on this machine.

The module is still a process of its own. Ansible prepares its options and reads its result, as always: a connection that
forks takes the place of the local one. Also shows the requests of a module, wherever it has run. Keeps P5, P10 and P12.

Everything private of ansible-core that the collection needs for this is in this file, and was seen in ansible-core 2.16 to 2.22:

- C(_task), C(_templar), C(_connection), C(_play_context), C(_compute_environment_string) and C(_execute_module) of an action, and
  C(basic._ANSIBLE_ARGS). Without one of them, the module runs the ordinary way.
- C(_configure_module) of an action, and what it returns: a tuple up to ansible-core 2.18, then C(module_common._BuiltModule). If it is
  not called, or if that cannot be created, the module runs the ordinary way.
- C(basic._ANSIBLE_PROFILE), C(_internal.is_controller) and C(_loader._handle_exception), from ansible-core 2.19 on. Without the
  last one, a module that raises an exception prints a traceback.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
import zlib
from types import ModuleType
from typing import IO, Any, NoReturn

from ansible import constants
from ansible.executor import module_common
from ansible.module_utils import basic
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible.plugins.connection.local import Connection as LocalConnection

from ..module_utils._http.transport import TRACE
from ..module_utils._untrusted import MAX_MESSAGE_LENGTH, displayable
from ._role_variables import with_variable

MODULES = __name__.rpartition(".plugin_utils.")[0] + ".modules."
# What Python, its libraries and the loader read only when a process starts.
READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "OPENSSL_", "MALLOC_", "GLIBC_")
PROFILE = "legacy"
# Obstacles that are as the user wants it
NOT_ALLOWED = "The variable clouddb_fork is false."
OTHER_SYSTEM = "The libraries of this system do not survive a fork."
NOT_LOCAL = "The connection is not local."
# The descriptors that this process has open
DESCRIPTORS = "/proc/self/fd"
# How many more a module opens: a connection for each of its workers, files and libraries.
MORE_DESCRIPTORS = 64
# Those of a Python that has just started
HANDLERS: dict[signal.Signals, Any] = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGALRM: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}


def load(action: str) -> ModuleType | None:
    """The module of the action plugin with this C(__name__). Ansible loads the plugin before it forks the processes of the tasks."""
    try:
        return importlib.import_module(MODULES + action.rpartition(".")[2])
    except Exception:  # pylint: disable=broad-except
        return None  # the ordinary way shows what is wrong with it


class ForkAction(NormalAction):
    """Like Ansible's action for all modules; C(module) is what load() has returned."""

    module: ModuleType | None = None
    _connection: Any

    @classmethod
    def of(cls, action: str) -> type[ForkAction]:
        """This action, for the module of the action plugin with this C(__name__)."""
        return type("ActionModule", (cls,), {"module": load(action), "__module__": action})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        try:
            obstacle = self._obstacle(task_vars or {})
        except Exception as error:  # pylint: disable=broad-except
            obstacle = f"{type(error).__name__}: {error}"
        if obstacle:
            self._be_ordinary(obstacle)
        else:
            self._connection = ForkConnection(self._connection, self.module)
        result: dict[str, Any] = super().run(tmp, task_vars)
        for line in result.pop(TRACE, ()):
            text = f"clouddb.control: {displayable(line, MAX_MESSAGE_LENGTH)}"
            self._display.vvv(text, host=(task_vars or {}).get("inventory_hostname"))
        return with_variable(result, str(self._task.get_path()), task_vars or {})

    def _obstacle(self, task_vars: dict[str, Any]) -> str:
        """Why the module can't run in a fork; empty if it can."""
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)
        connection, shell = self._connection, self._connection._shell
        is_allowed = boolean(self._templar.template(task_vars.get("clouddb_fork", True)), strict=False)
        python = self._interpreter(task_vars)
        # In the order in which a user would look for it.
        obstacles = {
            NOT_ALLOWED: not is_allowed,
            OTHER_SYSTEM: sys.platform != "linux",
            NOT_LOCAL: connection.__class__ is not LocalConnection,
            "The task has become.": connection.become is not None,
            "The task has async.": bool(self._task.async_val),
            "ANSIBLE_KEEP_REMOTE_FILES is set.": constants.DEFAULT_KEEP_REMOTE_FILES,
            "The shell is not /bin/sh.": {constants.DEFAULT_EXECUTABLE, self._play_context.executable} != {"/bin/sh"}
            or shell.SHELL_FAMILY != "sh",
            "Python reads a variable of environment when it starts.": any(
                str(name).startswith(READ_AT_START) for name in environment
            ),
            f"The Python of the host ({python}) is not that of the controller.": not is_own_python(python),
            "The module can't be imported on the controller.": self.module is None,
            "Another plugin has replaced a part of Ansible.": type(self)._execute_module
            is not ActionBase._execute_module,
            "This version of ansible-core passes options in an unknown way.": not hasattr(basic, "_ANSIBLE_ARGS"),
        }
        return next((text for text, applies in obstacles.items() if applies), "")

    def _interpreter(self, task_vars: dict[str, Any]) -> str:
        """The Python of the host; C(auto) as long as Ansible has to discover it."""
        if self._task.delegate_to:
            task_vars = task_vars["ansible_delegated_vars"][self._task.delegate_to]
        configured = constants.config.get_config_value("INTERPRETER_PYTHON", variables=task_vars)
        path = str(self._templar.template(configured) or "auto").strip()
        if path.startswith("auto"):
            path = task_vars.get("ansible_facts", {}).get("discovered_interpreter_python") or "auto"
        return str(path)

    def _configure_module(self, module_name: str, module_args: dict[str, Any], task_vars: dict[str, Any]) -> Any:
        """What Ansible passes to the connection: for a fork, the options only."""
        connection = self._connection
        # The result of a task with async does not pass through here.
        if self._display.verbosity >= 3 and not self._task.async_val and not self._task.no_log:
            module_args = {**module_args, TRACE: True}
        if isinstance(connection, ForkConnection):
            try:
                limit = constants.config.get_config_value("PYTHON_MODULE_RLIMIT_NOFILE", variables=task_vars)
                connection.prepare(int(self._templar.template(limit) or 0))
                return self._options_only(connection, module_args)
            except Exception as error:  # pylint: disable=broad-except
                self._be_ordinary(f"{type(error).__name__}: {error}")
                self._connection = connection.ordinary
        return super()._configure_module(module_name, module_args, task_vars)

    def _be_ordinary(self, obstacle: str) -> None:
        """Say why: for each task with -vvv, once a play with -v if the user can change it."""
        text = f"clouddb.control: The module runs in a process that Ansible starts. {obstacle}"
        can_change = obstacle not in (NOT_ALLOWED, OTHER_SYSTEM, NOT_LOCAL)
        if can_change and 0 < self._display.verbosity < 3 and self._is_first(obstacle):
            self._display.v(text)
        self._display.vvv(text)

    def _is_first(self, obstacle: str) -> bool:
        """Whether no other task of the play has met the obstacle. Each runs in a process of its own: the first one creates a file."""
        name = f"clouddb-{self._task.get_play()._uuid}-{zlib.crc32(obstacle.encode())}"
        with contextlib.suppress(OSError):
            # In the directory that Ansible removes when it ends.
            os.close(os.open(os.path.join(constants.DEFAULT_LOCAL_TMP, name), os.O_CREAT | os.O_EXCL, 0o600))
            return True
        return False

    def _options_only(self, connection: ForkConnection, module_args: dict[str, Any]) -> Any:
        self._compute_environment_string(connection.environment)
        connection.arguments = encoded({"ANSIBLE_MODULE_ARGS": module_args})
        shebang, path = f"#!{sys.executable}", connection.module.__file__
        if not hasattr(module_common, "_BuiltModule"):  # ansible-core up to 2.18
            return "new", shebang, connection.arguments, path
        built = module_common._BuiltModule(
            b_module_data=connection.arguments, module_style="new", shebang=shebang, serialization_profile=PROFILE
        )
        return built, path


class ForkConnection:
    """A local connection that calls the main() of a module in a fork, instead of starting Python with it."""

    # The module needs no file. From ansible-core 2.19 on, is_pipelining_enabled() says so.
    always_pipeline_modules = True

    def __init__(self, connection: Any, module: Any):
        self.ordinary = connection
        self.module = module
        self.arguments = b""
        self.environment: dict[str, Any] = {}
        self.open_files = 0
        self.files: list[IO[bytes]] = []
        self.cwd: bytes | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ordinary, name)

    def is_pipelining_enabled(self, wrap_async: bool = False) -> bool:
        """Always, as the module needs no file."""
        return True

    def prepare(self, open_files: int) -> None:
        """Take what the fork needs of the machine, and check what it cannot take. C(open_files) limits its descriptors, unless it is 0.

        Raises what the machine lacks: some kernels and filters of system calls have no memfd, some chroots no /proc.
        """
        # The output is not in files, because it may hold a secret.
        memory = [os.fdopen(os.memfd_create(name), "r+b", buffering=0) for name in ("stdout", "stderr")]
        self.files = [open(os.devnull, "r+b", buffering=0), *memory]  # noqa: SIM115
        limit, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if open_files:
            limit = self.open_files = min(hard, open_files)
        # The fork inherits them. A Python that Ansible starts does not.
        inherited = len(os.listdir(DESCRIPTORS))
        if limit < inherited + MORE_DESCRIPTORS:
            raise OSError(f"The limit of open files is {limit}, and a fork would begin with {inherited}.")

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """The exit status, output and standard error of the module, or of any other command."""
        if not in_data or in_data is not self.arguments:
            self.ordinary.cwd = self.cwd
            result: tuple[int, bytes, bytes] = self.ordinary.exec_command(cmd, in_data=in_data, sudoable=sudoable)
            return result
        null, stdout, stderr = self.files
        with null, stdout, stderr:
            pid = os.fork()
            if not pid:
                self._be_module()
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            for file in (stdout, stderr):
                file.seek(0)
            # A shell would return 128 and the number of the signal.
            return status if status >= 0 else 128 - status, stdout.read(), stderr.read()

    def _be_module(self) -> NoReturn:
        """Do what a Python that Ansible starts does, and end this process."""
        status = 1
        try:
            # First, so that the task's result has the exceptions of all that follows.
            for descriptor, file in enumerate(self.files):
                os.dup2(file.fileno(), descriptor)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", errors="backslashreplace")  # noqa: SIM115
            gc.freeze()  # a search for reference cycles would copy the memory of the parent
            for number, handler in HANDLERS.items():
                # A shell lets a program in the background ignore SIGINT, and its children inherit that.
                if signal.getsignal(number) != signal.SIG_IGN:
                    signal.signal(number, handler)
            replace_others()
            if self.open_files:
                hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
                resource.setrlimit(resource.RLIMIT_NOFILE, (self.open_files, hard))
            if self.cwd:
                os.chdir(self.cwd)
            os.environ.update({name: str(value) for name, value in self.environment.items()})
            time.tzset()
            with contextlib.suppress(ImportError):  # ansible-core up to 2.18
                from ansible.module_utils import _internal

                _internal.is_controller = False  # so that the result has the warnings
            basic._ANSIBLE_ARGS, basic._ANSIBLE_PROFILE = self.arguments, PROFILE
            self.module.main()
        except SystemExit as end:
            status = exit_status(end)
        except BaseException as error:  # pylint: disable=broad-except
            show_exception(error)
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)


def is_own_python(path: str) -> bool:
    """Whether it is the Python of this process, even by another name in the same directory."""
    with contextlib.suppress(OSError):
        return os.path.dirname(path) == os.path.dirname(sys.executable) and os.path.samefile(path, sys.executable)
    return False


def encoded(arguments: dict[str, Any]) -> bytes:
    """The options as Ansible sends them to a module."""
    try:
        from ansible.module_utils.common.json import Direction, get_module_encoder
    except ImportError:  # ansible-core up to 2.18
        from ansible.module_utils.common.json import AnsibleJSONEncoder

        return json.dumps(arguments, cls=AnsibleJSONEncoder, vault_to_text=True).encode()
    return json.dumps(arguments, cls=get_module_encoder(PROFILE, Direction.CONTROLLER_TO_MODULE)).encode()


def replace_others() -> None:
    """Let the process write to its output, and to nothing else that its parent has open.

    A reader of that would wait for a module that outlives its task. They are not closed: a log of the parent would
    otherwise be written to whatever the module opens next.
    """
    for descriptor in map(int, os.listdir(DESCRIPTORS)):
        with contextlib.suppress(OSError):  # that of the list is closed by now
            if descriptor > 2 and os.fstat(descriptor):
                os.dup2(0, descriptor)


def exit_status(end: SystemExit) -> int:
    """The exit status of a Python that ends so; it prints a code that is a text."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def show_exception(error: BaseException) -> None:
    """Print what Ansible prints when an exception ends a module."""
    try:
        from ansible.module_utils._internal._ansiballz import _loader

        _loader._handle_exception(error, PROFILE)
    except SystemExit:
        return
    except Exception:  # pylint: disable=broad-except
        # Up to ansible-core 2.18, nothing handles it.
        traceback.print_exception(type(error), error, error.__traceback__)
