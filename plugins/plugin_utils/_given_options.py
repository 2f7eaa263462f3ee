# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decrypts and checks the options of a plugin as they were given, because Ansible converts wrong values to others.

For a boolean, Ansible takes any text that does not mean true for false, so that C(validate_certs: ture) would turn the
validation off.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ansible import constants
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins import AnsiblePlugin

from ..module_utils._errors import InvalidOption
from ..module_utils._options import NUMBERS, plain_number, string_names
from ..module_utils._untrusted import displayable

SYNONYMS = {"boolean": "bool", "integer": "int", "dictionary": "dict"}
# The name under which Ansible knows the same options, but without types.
UNCONVERTED = "clouddb.control unconverted"


def decrypted(value: Any) -> Any:
    """The value, with the text of each C(!vault) value in it.

    Ansible reads these as objects with the methods of a string. They are not strings, so checks and conversions refuse them.
    """
    if isinstance(value, Mapping):
        return {name: decrypted(part) for name, part in value.items()}
    if isinstance(value, list):
        return [decrypted(part) for part in value]
    is_vaulted = hasattr(value, "encode") and not isinstance(value, str)
    return str(value) if is_vaulted else value


def check_given(plugin: AnsiblePlugin, given: Mapping[str, Any]) -> None:
    """Raise InvalidOption for a boolean or a number that Ansible would convert from something else, and for names other than strings.

    C(given) are the values in the configuration file of the plugin. Those in the environment and in C(ansible.cfg) are
    checked as well. The options and their types are those of the plugin's documentation.
    """
    definitions = plugin.option_definitions
    untyped = {option: {**definition, "type": "raw"} for option, definition in definitions.items()}
    constants.config.initialize_plugin_configuration_definitions(plugin.plugin_type, UNCONVERTED, untyped)
    look_up = partial(constants.config.get_config_value_and_origin, plugin_type=plugin.plugin_type, direct=given)
    for option, definition in definitions.items():
        value, origin = look_up(option, plugin_name=UNCONVERTED)
        is_in_file = origin == "Direct"
        if value == "" and not is_in_file:
            # An empty environment variable counts as not set.
            value = definition.get("default")
        if value is None:
            continue
        label, type_name = option if is_in_file else f"{option} ({origin})", _type(definition)
        if type_name in NUMBERS:
            plain_number(label, value, type_name)
        elif type_name == "bool":
            # With quotes in ansible.cfg, a value that means true is false for Ansible.
            if not _is_boolean(value) or boolean(value) is not look_up(option, plugin_name=plugin._load_name)[0]:
                raise InvalidOption(label, f"must be true or false, not '{displayable(value, 100)}'")
        elif type_name == "dict":
            # Ansible's own error would show the value, which may be a vaulted text.
            if not isinstance(value, Mapping):
                raise InvalidOption(label, "must be a dictionary")
            string_names(label, value)
        elif isinstance(value, list):
            _check_items(label, definition, value)


def _check_items(option: str, definition: Mapping[str, Any], items: list[Any]) -> None:
    """Raise InvalidOption for anything but a boolean in an item of a list. Ansible does not convert these."""
    booleans = {name for name, part in definition.get("suboptions", {}).items() if _type(part) == "bool"}
    for item in items:
        for name in booleans.intersection(item if isinstance(item, Mapping) else ()):
            if not isinstance(item[name], (bool, type(None))):
                given = displayable(item[name], 100)
                raise InvalidOption(option, f"{name} must be true or false without quotes, not '{given}'")


def _type(definition: Mapping[str, Any]) -> str:
    name: str = definition.get("type", "str")
    return SYNONYMS.get(name, name)


def _is_boolean(value: Any) -> bool:
    try:
        boolean(value)
    except TypeError:
        return False
    return True
