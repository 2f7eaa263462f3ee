# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What plugins use of ansible-core and what has another name, or does not exist, in another version of it.

From ansible-core 2.23 on, the old names are to be deprecated: C(ansible.utils.unsafe_proxy), C(AnsibleFilterError) and
C(AnsibleLookupError). Seen in 2.16 to 2.22.
"""

from __future__ import annotations

from typing import Any

try:
    from ansible.errors import AnsibleTemplatePluginError as FilterFailed
    from ansible.errors import AnsibleTemplatePluginError as LookupFailed
except ImportError:  # ansible-core up to 2.18, which shows only a lookup's own class as it is
    from ansible.errors import AnsibleFilterError as FilterFailed
    from ansible.errors import AnsibleLookupError as LookupFailed
    from ansible.utils.unsafe_proxy import wrap_var as inert
else:

    def inert(value: Any) -> Any:
        """The value: only a text that is marked as trusted is a template."""
        return value


try:
    from ansible.module_utils.secrets import register_secrets
except ImportError:  # ansible-core up to 2.21
    register_secrets = None

__all__ = ["FilterFailed", "LookupFailed", "inert", "register_secrets"]
