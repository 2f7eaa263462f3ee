# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every module shares: the connection options, and a main() that ends the task in one place."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule, env_fallback, missing_required_lib
from ansible.module_utils.common.parameters import remove_values

from ._errors import ClouddbError
from ._http import transport
from ._http.client import Client
from ._http.connection import Connection, connection_from, encodings

Run = Callable[[Mapping[str, Any], Client, bool], dict[str, Any]]


def connection_argument_spec(**options: Any) -> dict[str, Any]:
    """The argument spec of the connection options, together with a module's own."""
    defaults = Connection._field_defaults
    return {
        "base_url": {"type": "str", "required": True, "fallback": (env_fallback, ["CLOUDDB_BASE_URL"])},
        "api_key": {"type": "str", "required": True, "no_log": True, "fallback": (env_fallback, ["CLOUDDB_API_KEY"])},
        "validate_certs": {"type": "bool", "default": defaults["validate_certs"]},
        "ca_path": {"type": "path"},
        "allow_http": {"type": "bool", "default": False},
        "api_timeout": {"type": "float", "default": defaults["api_timeout"]},
        "api_retries": {"type": "int", "default": defaults["api_retries"]},
        **options,
    }


def run_module(module: AnsibleModule, run: Run) -> None:
    """Call C(run(params, client, check_mode)) and end the task with its result, or with the error it raised."""
    if transport.REQUESTS_IMPORT_ERROR:
        module.fail_json(msg=missing_required_lib("requests"), exception=transport.REQUESTS_IMPORT_ERROR)
    # A blank key is no secret, and would be censored wherever there is white space.
    module.no_log_values = {value for value in module.no_log_values if value.strip()}
    try:
        connection = connection_from(module.params)
        # The option may have had white space around it, which the censored value would then have too.
        module.no_log_values.update(encodings(connection.api_key))
        result = run(module.params, Client(connection), module.check_mode)
    except ClouddbError as error:
        _end(module, module.fail_json, error.as_result())
    except Exception as error:  # pylint: disable=broad-except
        # Left to Ansible, it would be shown uncensored, and libraries put all kinds of values into their messages.
        unexpected = {"kind": "unexpected", "exception": type(error).__name__}
        module.fail_json(
            msg=f"unexpected {type(error).__name__}: {error}", failure=unexpected, exception=traceback.format_exc()
        )
    else:
        _end(module, module.exit_json, result)


def _end(module: AnsibleModule, end: Callable[..., None], result: dict[str, Any]) -> None:
    for warning in result.pop("warnings", []):
        # Ansible censors results, but not warnings.
        module.warn(remove_values(warning, module.no_log_values))
    if not module._diff:
        result.pop("diff", None)
    end(**result)
