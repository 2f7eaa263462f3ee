# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lookup plugins share: checked options, a client, errors as Ansible shows them, secrets that it masks. Keeps P3, P5 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.lookup import LookupBase

from ..module_utils._errors import ClouddbError, InvalidOption
from ..module_utils._http.client import Client
from ..module_utils._http.connection import CONNECTION_OPTIONS, connection_from
from ..module_utils._http.session import REQUESTS_IMPORT_ERROR, missing_requests
from ..module_utils._lists import no_such
from ..module_utils._options import as_text, not_blank
from ..module_utils._secrets import Masker
from ._versions import LookupFailed, register_secrets


class ClientLookup(LookupBase):
    """A lookup with the connection options. C(find) returns its values."""

    def find(self, client: Client, params: Mapping[str, Any], terms: Sequence[Any]) -> list[str]:
        """The values for these options and terms. Raises ClouddbError."""
        raise NotImplementedError

    def run(self, terms: Sequence[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any) -> list[str]:
        """The values; C(kwargs) are the options. Raises LookupFailed, with the client's message."""
        if REQUESTS_IMPORT_ERROR:
            raise LookupFailed(missing_requests())
        masker = Masker()
        try:
            definitions = {name: each for name, each in self.option_definitions.items() if not name.startswith("_")}
            self.set_options(var_options=variables, direct=checked(kwargs, definitions))
            params = {name: self.get_option(name) for name in definitions}
            # connection_from() refuses an empty value, and says what to set.
            required = {name: params[name] or "" for name, option in CONNECTION_OPTIONS.items() if "fallback" in option}
            client = Client(connection_from({**params, **required}))
            masker = client.masker
            return self.find(client, params, terms)
        except ClouddbError as error:
            # Without its cause, whose text is not masked.
            raise LookupFailed(masker.text(str(error))) from None
        finally:
            if register_secrets:
                register_secrets(masker.secrets)


def checked(given: Mapping[str, Any], definitions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The options that are given. Raises InvalidOption for those that Ansible would ignore, or take for something else."""
    for name in sorted(set(given) - set(definitions)):
        raise InvalidOption(name, no_such("option", name, definitions))
    for name, definition in definitions.items():
        if definition.get("required") and name not in given:
            raise InvalidOption(name, "is required. Set a value.")
    return {name: _checked(name, value, definitions[name]["type"]) for name, value in given.items()}


def _checked(name: str, value: Any, type_name: str) -> Any:
    if type_name == "str":
        return checked_text(name, value)
    if value is not None and type_name == "bool":
        try:
            return boolean(value)
        except TypeError:
            # Ansible would take it for false.
            raise InvalidOption(name, "must be true or false") from None
    return value


def checked_text(name: str, value: Any) -> str:
    """The text of an option or term. Raises InvalidOption for other values, which Ansible would turn into a text, and for a blank one."""
    if value is None:
        raise InvalidOption(name, "must not be null. Set a value, or omit the option.")
    # Up to ansible-core 2.18, a value with !vault is an object.
    text = as_text(name, str(value) if hasattr(value, "encode") else value)
    # connection_from() says what to set in place of a blank one.
    return text if name in CONNECTION_OPTIONS else str(not_blank({name: text}, name))
