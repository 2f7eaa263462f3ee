# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of the connection options. Keeps P2, P4 and P5."""

from __future__ import annotations

ENVIRONMENT = ("base_url", "api_key")


class ModuleDocFragment:
    """Documents CONNECTION_OPTIONS of module_utils/_http/connection.py; PLUGIN is for plugins that run on the controller."""

    PLUGIN: str

    DOCUMENTATION = r"""
options:
  base_url:
    description:
      - Base address of the control API with its version segment, for example V(https://control.example.com/api/v2).
        A trailing slash is fine.
      - If not set, the environment variable E(CLOUDDB_BASE_URL) of the machine that sends the requests is used. One of them is required.
    type: str
  api_key:
    description:
      - API key of the account, sent as the bearer token. White space, byte order marks and zero-width characters around it are dropped.
      - If not set, the environment variable E(CLOUDDB_API_KEY) of the machine that sends the requests is used. One of them is required.
    type: str
  validate_certs:
    description:
      - Whether to validate the service's certificate. E(REQUESTS_CA_BUNDLE) and E(CURL_CA_BUNDLE) do not override V(false).
      - Set it to V(false) for tests only.
    type: bool
    default: true
  ca_path:
    description:
      - CA bundle to validate the service's certificate with, or a directory of certificates, prepared with C(openssl rehash).
      - If not set, E(REQUESTS_CA_BUNDLE) and E(CURL_CA_BUNDLE) apply, and without them the bundle of the C(requests) package.
    type: path
  allow_http:
    description: Whether to allow plain C(http) for hosts other than loopback addresses. The key then crosses the network unencrypted.
    type: bool
    default: false
  api_timeout:
    description: Maximum duration of one attempt of a request, in seconds, from the name lookup to the last byte of the response.
    type: float
    default: 30
  api_retries:
    description:
      - Maximum number of further attempts after a transient error, up to 100. V(0) means a single attempt.
      - POST and PATCH requests are retried only if the service cannot have acted on them.
        R(Reliability and security, ansible_collections.clouddb.control.docsite.reliability) lists what is retried, and when.
    type: int
    default: 5
requirements:
  - requests >= 2.25
notes:
  - E(HTTPS_PROXY), E(HTTP_PROXY), E(ALL_PROXY) and E(NO_PROXY) set proxies, in the environment of the machine that sends the requests.
  - V(********) replaces secrets in responses, for example the password in an address that the error of an operation contains.
  - Set connection options that all tasks share in C(module_defaults) for the group C(clouddb.control.all).
"""


def _for_plugins(documentation: str) -> str:
    """The same options for plugins, for which Ansible itself reads the environment variables."""
    for option in ENVIRONMENT:
        documentation = documentation.replace(
            f"  {option}:\n", f"  {option}:\n    env: [{{name: CLOUDDB_{option.upper()}}}]\n"
        )
    return "".join(line for line in documentation.splitlines(keepends=True) if "module_defaults" not in line)


ModuleDocFragment.PLUGIN = _for_plugins(ModuleDocFragment.DOCUMENTATION)
