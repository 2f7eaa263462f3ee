# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that convert a result of the module api_key_policy to the text of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ...module_utils._untrusted import displayable


def filter_named(name: str, text_of: Callable[[Mapping[str, Any]], str]) -> Callable[[Any], Any]:
    """The filter that converts a result of the module to this text.

    The text is marked as unsafe, so that values of the service are never rendered as templates.
    """

    def convert(result: Any) -> Any:
        try:
            return wrap_var(text_of(result))
        # What Python raises for an input that is not the result of the module.
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise AnsibleFilterError(
                f"{name}: the input must be the result of clouddb.control.api_key_policy: {displayable(error)}"
            ) from error

    return convert
