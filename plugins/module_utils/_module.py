# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all modules share: the connection options, and the one place where a task begins and ends. Keeps P3, P5, P9, P11 and P12.

Without future annotations, so that _errors.py names a Python that is too old.
"""

import functools
import gc
import json
import traceback
import zipimport
from collections.abc import Collection, Mapping
from typing import Any, Callable, Optional

# Python compiles each file of the archive that Ansible sends twice: for its name, and to run it. To do it once saves 6 % of a
# task's time. The function is private of Python, and was seen in 3.9 to 3.13.
if isinstance(__spec__.loader, zipimport.zipimporter) and hasattr(zipimport, "_get_module_code"):
    zipimport._get_module_code = functools.lru_cache(maxsize=1)(zipimport._get_module_code)

from ansible.module_utils.basic import FILE_COMMON_ARGUMENTS, AnsibleModule

try:
    from ansible.module_utils.secrets import register_secrets
except ImportError:  # ansible-core up to 2.21
    register_secrets = None

from ._errors import ClouddbError, InvalidOption, sentence
from ._http.client import Client
from ._http.connection import CONNECTION_OPTIONS, connection_from
from ._http.session import REQUESTS_IMPORT_ERROR, missing_requests
from ._http.transport import TRACE
from ._options import NOT_CREATED_ID, NOT_CREATED_KEY_ID, as_text, not_blank, require_name, require_number
from ._secrets import Masker, encodings, masked, masked_text, may_hold_secrets
from ._untrusted import MAX_MESSAGE_LENGTH, displayable, walk

# Called with the options, the client and whether this is check mode; returns the result.
RunFunction = Callable[..., dict[str, Any]]

# The options that select by id what, in check mode, only an earlier task would create. A test compares them with all options.
MAY_LACK_VALUE = frozenset(
    {
        "id",
        "project",
        "project_id",
        "branch",
        "branch_id",
        "parent",
        "source",
        "endpoint_id",
        "operation_id",
        "operations",
        "snapshot",
    }
)


class ControlModule(AnsibleModule):
    """A module with the connection options, whose every failure has RV(failure), even one that Ansible itself finds in its options.

    C(ids) are further options such as MAY_LACK_VALUE.
    """

    no_log_values: set[str]
    params: dict[str, Any]

    def __init__(self, argument_spec: Mapping[str, Any], ids: Collection[str] = (), **arguments: Any):
        self._ids = MAY_LACK_VALUE.union(ids)
        spec = {**CONNECTION_OPTIONS, **argument_spec}
        super().__init__(argument_spec=spec, supports_check_mode=True, **arguments)

    def run(self, function: RunFunction) -> None:
        """Call C(function(params, client, check_mode)), and end the task with its result, or with the error it raised."""
        if REQUESTS_IMPORT_ERROR:
            message = f"{missing_requests()}, or set ansible_python_interpreter to a Python that has it."
            self.fail_json(msg=message, failure={"kind": "missing_library"}, exception=REQUESTS_IMPORT_ERROR)
        masker = Masker()
        end: Callable[..., None] = self.fail_json
        try:
            _check_given(self.given, self.argument_spec, self.check_mode)
            connection = connection_from(self.params)
            # The option may have had white space around it, which the censored value would then have too.
            if connection.api_key:
                self.no_log_values.update(encodings(connection.api_key))
            client = Client(connection, trace=self.trace)
            masker = client.masker
            masker.hide(*self.no_log_values)
            result = function(self.params, client, self.check_mode)
            end = self.exit_json
        except ClouddbError as error:
            result = error.as_result()
        except Exception as error:  # pylint: disable=broad-except
            # Ansible itself would show it uncensored, and libraries quote all kinds of values in their messages.
            # A part of a key that the end of a message cuts would not be found any more.
            text = masker.text(f"Unexpected {type(error).__name__}: {error}")
            result = {
                "msg": displayable(text, MAX_MESSAGE_LENGTH),
                "failure": {"kind": "unexpected", "exception": type(error).__name__},
                "exception": "\n".join(map(displayable, masker.text(traceback.format_exc()).splitlines())),
            }
        self._end_task(end, result, masker)

    def _end_task(self, end: Callable[..., None], result: dict[str, Any], masker: Masker) -> None:
        """End the task with the result, whose texts quote no secrets."""
        # Not the rest of the result, which may return a new key.
        texts = {name: result[name] for name in ("msg", "failure", "exception", "warnings") if result.get(name)}
        if texts:
            result = {**result, **walk(texts, masker.text)}
        for warning in result.pop("warnings", []):
            self.warn(displayable(warning, MAX_MESSAGE_LENGTH))
        if not self._diff:
            result.pop("diff", None)
        if self.trace:
            result[TRACE] = self.trace
        if register_secrets:
            # Ansible masks them in all that it shows from now on. Later tasks still get the values.
            register_secrets(masker.secrets)
        # At exit, the interpreter would search for reference cycles: 6 % of the instructions of a process for api_key_info, counted
        # with valgrind.
        gc.freeze()
        end(**result)

    def _load_params(self) -> None:
        """Read the options as Ansible has sent them, without that of the action plugin.

        In check mode, an earlier task would provide an id or a key without a value.
        """
        super()._load_params()
        self.trace: Optional[list[str]] = [] if self.params.pop(TRACE, False) else None
        if self.params.get("_ansible_check_mode"):
            # The key in the environment has the same access (api.md, Authentication).
            if _lacks_value(self.params.get("api_key")):
                self.params.pop("api_key", None)
            for option in self._ids.intersection(self.params, self.argument_spec):
                self.params[option] = _or_placeholder(self.params[option], self.argument_spec[option]["type"])
        # In params, Ansible will convert them, and omitted options are null.
        self.given = dict(self.params)

    def log(self, msg: str, log_args: Optional[dict[str, Any]] = None) -> None:
        """Write to the system's log, for example the options, in which Ansible masks the key only."""
        if self._options_may_hold_secrets():
            msg, log_args = masked_text(msg), log_args and walk(log_args, masked_text)
        super().log(msg, log_args)

    def fail_json(self, msg: str, **result: Any) -> None:
        """End the task as failed."""
        if "failure" not in result:
            result["failure"] = {"kind": "invalid_option"}
            msg = " ".join([sentence(msg), *self._similar_options()])
        # A blank key is no secret, and would be censored wherever there is white space.
        self.no_log_values = {value for value in self.no_log_values if value.strip()}
        self._mask_options()
        super().fail_json(msg=msg, **result)

    def _similar_options(self) -> list[str]:
        """A question for each given option that does not exist and is like one that does. Ansible names all, or none."""
        from difflib import get_close_matches

        unknown = [name for name in self.given if not name.startswith("_ansible_") and name not in self.argument_spec]
        near = {name: get_close_matches(name.lower(), self.argument_spec, 1, 0.7) for name in unknown}
        return [f"Did you mean {each[0]} instead of {displayable(name, 100)}?" for name, each in near.items() if each]

    def exit_json(self, **result: Any) -> None:
        """End the task as succeeded."""
        if self._options_may_hold_secrets():
            self._mask_options()
        super().exit_json(**result)

    def _options_may_hold_secrets(self) -> bool:
        # The connection options are checked: they hold no secret but the key, which Ansible censors.
        own = {name: value for name, value in self.params.items() if name not in CONNECTION_OPTIONS}
        return may_hold_secrets(json.dumps(own, default=str).encode(), ())

    def _mask_options(self) -> None:
        """Mask the secrets in the options, which Ansible shows with -vvv."""
        self.params = masked(self.params, self.params.get("secret_fields") or ())


def _or_placeholder(value: Any, type_name: str) -> Any:
    """The id, or its placeholder if it has no value; the ids and operations of a list that have one."""
    if isinstance(value, list):
        return [item for item in value if not _lacks_value(item)]
    return {"str": NOT_CREATED_ID, "int": NOT_CREATED_KEY_ID, "list": []}[type_name] if _lacks_value(value) else value


def _lacks_value(value: Any) -> bool:
    """Whether it is null, or empty as null becomes in templates before ansible-core 2.19, or an operation with such an id."""
    if isinstance(value, dict):
        return any(_lacks_value(value[field]) for field in ("id", "project_id") if field in value)
    return value is None or value == ""


def _check_given(given: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]], check_mode: bool) -> None:
    """Raise InvalidOption for an option that is given as null or blank, or as a list with such a value, or with a required
    suboption that is null, and for what is no text, name or number where one is required.

    Ansible treats null as if the option were omitted: a variable without a value would select everything. Only where an
    omitted option can mean nothing else, null is the same: for optional connection options, and permissions of files.
    """
    for option, spec in specs.items():
        # Not by its name: a database has an owner, too.
        is_of_files = spec is FILE_COMMON_ARGUMENTS.get(option)
        may_be_null = is_of_files or (option in CONNECTION_OPTIONS and "fallback" not in spec)
        value = given.get(option, "")
        if value is None and not may_be_null:
            raise InvalidOption(option, "must not be null. Set a value, or omit the option with default(omit).")
        if isinstance(value, list) and None in value:
            raise InvalidOption(option, "must not contain null. Leave out items without a value.")
        if not is_of_files and option not in CONNECTION_OPTIONS:
            not_blank(given, option)
            _require_as_written(option, value, spec, check_mode)
        entries = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, dict)]
        for name, suboption in spec.get("options", {}).items():
            if suboption.get("required") and any(entry.get(name, "") is None for entry in entries):
                raise InvalidOption(option, f"{name} must not be null. Set a value.")
            for entry in entries:
                _require_as_written(option, entry.get(name), suboption, check_mode, name)


def _require_as_written(option: str, value: Any, spec: Mapping[str, Any], check_mode: bool, field: str = "") -> None:
    """Raise InvalidOption if Ansible would turn the value into one that may not have been written, or if a text is no name."""
    is_list = spec["type"] == "list" and isinstance(value, list)
    type_name = spec["elements"] if spec["type"] == "list" else spec["type"]
    for item in value if is_list else [value]:
        if item is None:
            continue
        if type_name in ("int", "float"):
            require_number(option, item, field)
        elif type_name in ("str", "path"):
            text = as_text(option, item, field)
            if type_name == "str":
                require_name(option, text, check_mode, field)
