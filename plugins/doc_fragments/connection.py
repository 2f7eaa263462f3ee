# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection options, as every module documents them."""

from __future__ import annotations

ENVIRONMENT = ("base_url", "api_key")


class ModuleDocFragment:
    """Documents what module_utils/argument_spec.py declares; PLUGIN is for plugins that run on the controller."""

    PLUGIN: str

    DOCUMENTATION = r"""
options:
  base_url:
    description:
      - Base address of the control API with its version segment, for example V(https://control.example.com/api/v2).
        A trailing slash is fine.
      - If not set, the environment variable E(CLOUDDB_BASE_URL) is used, as it is set where the plugin runs.
    type: str
    required: true
  api_key:
    description:
      - API key of the account, sent as the bearer token. White space around it, as a key read from a file may have, is dropped.
      - If not set, the environment variable E(CLOUDDB_API_KEY) is used, as it is set where the plugin runs.
    type: str
    required: true
  validate_certs:
    description:
      - Whether the service's certificate is checked. This holds whatever E(REQUESTS_CA_BUNDLE) or E(CURL_CA_BUNDLE) say.
      - Set it to V(false) for tests only.
    type: bool
    default: true
  ca_path:
    description:
      - File or folder with the certificates of the authorities to trust.
      - If not set, E(REQUESTS_CA_BUNDLE) and E(CURL_CA_BUNDLE) apply, and without them the bundle of the C(requests) package.
    type: path
  allow_http:
    description:
      - Allows plain C(http) to other machines, which shows the key to every network on the way.
      - Without it, plain C(http) works with loopback addresses only.
    type: bool
    default: false
  api_timeout:
    description:
      - Seconds that one request may take to connect, and then for its whole response.
    type: float
    default: 30
  api_retries:
    description:
      - Further attempts after a transient failure of a request, at most 100; V(0) means a single try.
      - Reading and revoking are tried again after connection faults, broken answers and the HTTP statuses 423, 429, 500, 502, 503 and 504.
        Creating is tried again only when the service surely did not act, which is when no connection could be made, and after 423, 429 and 503.
      - The pauses between attempts grow, with jitter, to 20 seconds; at a rate limit they are longer, more than a minute together.
        A C(Retry-After) of the service is honoured up to 60 seconds; who is refused again after it waits longer.
    type: int
    default: 5
requirements:
  - requests
notes:
  - Proxies are taken from the environment, that is from E(HTTPS_PROXY), E(HTTP_PROXY) and E(NO_PROXY) where the module runs.
  - Connection options that all tasks share belong in C(module_defaults) of the group C(clouddb.control.all).
"""


def _for_plugins(documentation: str) -> str:
    """The same options, with the environment variables as plugins have them: looked up by Ansible itself."""
    for option in ENVIRONMENT:
        documentation = documentation.replace(
            f"  {option}:\n", f"  {option}:\n    env: [{{name: CLOUDDB_{option.upper()}}}]\n"
        )
    return "".join(line for line in documentation.splitlines(keepends=True) if "module_defaults" not in line)


ModuleDocFragment.PLUGIN = _for_plugins(ModuleDocFragment.DOCUMENTATION)
