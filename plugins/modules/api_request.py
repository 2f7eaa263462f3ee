#!/usr/bin/python

# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends any request of the API, and waits for the operations that it starts. Keeps P2, P3, P5 and P9."""

DOCUMENTATION = r"""
module: api_request
short_description: Send any API request and wait for its operations
version_added: 1.0.0
description:
  - Sends any request of the control API, and waits for the operations that it starts. For branches, databases, users, projects and API keys,
    prefer the modules of these resources.
  - With O(find), you can repeat the task. It looks the resource up, sends the request only if something has to change, and waits until the
    resource is in the requested state. If that takes longer than O(timeout), the task fails.
  - If the response to a POST or PATCH request is lost, the request is not sent again. With O(find), the task finds out whether it was carried out.
author: clouddb.control contributors (@clouddb)
extends_documentation_fragment:
  - clouddb.control.connection
  - clouddb.control.attributes
  - clouddb.control.attributes.changes
  - clouddb.control.wait
attributes:
  check_mode:
    details:
      - Only GET requests are sent. RV(request) shows the request that would be sent.
      - A resource that would be created has the C(id) V(null), which later tasks accept in O(path), O(query) and O(find). They send nothing.
        The RV(json) of a GET request is then V(null), with a warning, as it is after a 404.
  diff_mode:
    details:
      - Only the fields of the resource that change are shown.
options:
  method:
    description: HTTP method of the request.
    type: str
    choices: [GET, POST, PATCH, PUT, DELETE]
    default: GET
  path:
    description:
      - Path of the request below O(base_url), for example V(projects/wispy-lake-12345678/branches). The module encodes it.
      - The task replaces a segment such as V({id}) or V({name}) by this field of the resource that O(find) found.
    type: str
    required: true
  query:
    description: Query parameters. Values are strings, numbers, booleans, or lists of them.
    type: dict
  body:
    description:
      - JSON object to send. Required for PATCH and PUT.
      - ansible-core up to 2.18 turns a number that a template computes, such as V("{{ hours * 3600 }}"), into text. Let a template return the whole
        dictionary instead, or set a variable to the number first.
    type: dict
  status_code:
    description:
      - HTTP statuses of a successful response. If not set, any status from 200 to 299.
      - For methods other than GET, you cannot set statuses such as 500 and 503, because the service may have carried out the request.
    type: list
    elements: int
  find:
    description:
      - How to look up the resource that the request creates, changes or deletes. All pages of its list are searched first. If several resources
        match, the task fails.
      - If O(find.match) has the field of the placeholder in O(path), such as C(id), PATCH, PUT and DELETE tasks first fetch the resource by this path.
      - For POST, nothing is sent if a resource matches. If it is being deleted, the task first waits until it is gone. If its creation has failed,
        the task fails with the error of that operation.
      - For POST, O(body) must have the fields of O(find.match), in a wrapper whose name fits the list, such as C(branch) for C(branches).
        Otherwise each run would create a resource. Without O(find.list), there is no wrapper.
      - For PATCH and PUT, nothing is sent if the resource already has the values of the fields in the wrapper. If no resource matches, the task fails.
        If the resource still differs after the request, the task shows a warning.
      - For DELETE, nothing is sent if no resource matches. If it is being deleted, the task waits until it is gone.
      - For GET, RV(object) is the resource, and RV(json) is the list. If O(path) has a placeholder, RV(json) is the response for this path, and
        the task fails if no resource matches.
      - If nothing has to be sent, the task still waits for unfinished operations on the resource, which an interrupted run may have started.
    type: dict
    suboptions:
      path:
        description: Path of the list. If not set, it is O(path) without a placeholder at its end.
        type: str
      list:
        description: Name of the array in the response, for example V(branches). If not set, the response itself is the array.
        type: str
      match:
        description:
          - Fields of the resource with their values, at any depth. Numbers are compared by value, and timestamps as times.
          - A field that names a resource, such as C(name), C(id) or C(owner_id), must be text or an integer. Quote a name such as V("1.10").
          - Values cannot be V(null), or an empty text, dictionary or list. Required for all methods except for GET.
          - If no resource in the list has one of these fields, a warning names it.
        type: dict
      query:
        description: Query parameters of the list, for example C(search) or C(limit).
        type: dict
  all_pages:
    description: Whether a GET request fetches all pages of the list that it returns.
    type: bool
    default: false
  wait:
    description:
      - Whether to wait for the operations on the resource and, after the request, until it is in the requested state.
      - With V(false), the task still waits for a resource that is being deleted before it sends the request.
    type: bool
    default: true
  lock_timeout:
    description: How long to wait for unfinished operations that lock the project (HTTP status 423), or for a resource that the service calls not
      ready, before the request is sent again, in seconds or with a unit, such as V(5m). V(0) fails at once. This time does not count against
      O(timeout).
    type: raw
    default: 300
  secret_fields:
    description: Names of further fields whose values are secret.
    type: list
    elements: str
    default: []
  expose_secrets:
    description:
      - Whether the result contains the secrets of the response. If not set, V(********) replaces them.
      - Ansible masks them in all output from ansible-core 2.22 on. Before, set C(no_log) on the task, and on those that use them.
      - The secrets are the fields C(key), C(pass), C(pwd), C(connection_uri) and C(connection_string), fields whose name contains C(password),
        C(passwd), C(passphrase), C(secret), C(token), C(api_key) or C(private_key), in any case style, and those in O(secret_fields). A property
        of a secret, such as C(token_id) or C(password_updated_at), is not secret. In addresses and in texts such as C(password=…), only the
        password is secret.
      - Secrets in O(body), O(query) and O(find) are always left out of the options that Ansible shows with C(-vvv), and out of messages if they have
        at least 6 characters.
    type: bool
    default: false
notes:
  - O(path), O(body), O(find.list) and the fields in O(find.match) come from the API reference of the service. A sandbox serves its OpenAPI document
    at the path C(/openapi.json) of its server, to requests with an API key.
  - The target does not log the task's options, because O(body) may contain secrets.
seealso:
  - module: clouddb.control.branch
  - module: clouddb.control.database
  - module: clouddb.control.database_user
  - module: clouddb.control.project
  - module: clouddb.control.operation_wait
"""

EXAMPLES = r"""
# The examples take base_url and api_key from CLOUDDB_BASE_URL and CLOUDDB_API_KEY.

- name: Create a branch without a compute, unless there is one of this name
  clouddb.control.api_request:
    method: POST
    path: projects/wispy-lake-12345678/branches
    find: {list: branches, match: {name: archive}}
    body: {branch: {name: archive}, endpoints: []}

- name: Rename the branch
  clouddb.control.api_request:
    method: PATCH
    path: projects/wispy-lake-12345678/branches/{id}
    find: {list: branches, match: {name: archive}}
    body: {branch: {name: archive-2026}}

- name: List all branches
  clouddb.control.api_request:
    path: projects/wispy-lake-12345678/branches
    all_pages: true
  register: branches

- name: Reset the password of a user
  clouddb.control.api_request:
    method: POST
    path: projects/wispy-lake-12345678/branches/br-small-term-683261/roles/app/reset_password
    expose_secrets: true
  no_log: true # needed before ansible-core 2.22
  register: reset
"""

RETURN = r"""
json:
  description:
    - Decoded response. With O(all_pages=true) it contains the complete list.
    - V(null) if no request was sent, if the response was lost, and in check mode for methods other than GET.
  returned: success, and when the wait failed
  type: raw
  sample:
    branch:
      id: br-small-term-683261
      name: preview
status:
  description: HTTP status of the response. V(null) without one.
  returned: success, and when the wait failed
  type: int
  sample: 201
object:
  description:
    - The resource that O(find) found, or that the response is about, such as its C(branch), as it is when the task ends. With O(wait=false), as
      the response shows it.
    - After a creation, it also has the fields that only the response shows. V(null) if there is no resource.
  returned: success, and when the wait failed
  type: dict
operations:
  description: Last known state of each operation that the request started or, if nothing was sent, that was unfinished on the resource, with all
    fields that the service sent. See RV(clouddb.control.operation_info#module:operations).
  returned: success, and when the wait failed
  type: list
  elements: dict
request:
  description: The request that was sent, or in check mode would be sent, without secrets. V(null) for GET requests, and if nothing has to change.
  returned: success, and when the wait failed
  type: dict
  sample:
    method: POST
    path: /projects/wispy-lake-12345678/branches
    query: {}
    body: {branch: {name: preview}}
elapsed:
  description: Duration of the task, in seconds. V(0.0) for GET requests and in check mode.
  returned: success, and when the wait failed
  type: float
polls:
  description: Number of polls of operations.
  returned: success, and when the wait failed
  type: int
failed_ids:
  description: Ids of the failed operations.
  returned: when the wait failed
  type: list
  elements: str
pending_ids:
  description: Ids of the unfinished operations.
  returned: when the wait failed
  type: list
  elements: str
failure:
  description: Machine-readable cause of the failure. R(Kinds of failure,
    ansible_collections.clouddb.control.docsite.failure_kinds) lists the kinds and fields.
  returned: failure
  type: dict
  sample:
    kind: locked
"""

from collections.abc import Mapping
from typing import Any

from ansible_collections.clouddb.control.plugins.module_utils._module import ControlModule

from ..module_utils._errors import ClouddbError
from ..module_utils._http.client import Client
from ..module_utils._operations.wait import WAIT_OPTIONS, wait_options
from ..module_utils._operations.waiting import Waiting
from ..module_utils._resources.engine import Engine
from ..module_utils._resources.goal import READ
from ..module_utils._resources.request import goal_from, read
from ..module_utils._secrets import secret_texts
from ..module_utils._timestamps import duration


def run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    """Returns the result of the task, without the secrets that were not asked for."""
    given = [params.get(name) for name in ("query", "body", "find")]
    client.masker.hide(*secret_texts(given, params["secret_fields"]))
    try:
        return _shown(_run(params, client.with_secrets(), check_mode), client, params)
    except ClouddbError as error:
        error.result = _shown(error.result, client, params)
        raise


def _shown(result: Mapping[str, Any], client: Client, params: Mapping[str, Any]) -> dict[str, Any]:
    """The result without secrets."""
    fields = params["secret_fields"]
    exposed = ("json", "object", "operations") if params["expose_secrets"] else ()
    hidden = {name: value for name, value in result.items() if name not in exposed}
    # The service's texts may quote a secret of the response.
    client.masker.hide(*secret_texts(result, fields))
    return {**result, **client.masker.data(hidden, fields)}


def _run(params: Mapping[str, Any], client: Client, check_mode: bool) -> dict[str, Any]:
    limits, lock_timeout = wait_options(params), duration(params, "lock_timeout")
    goal = goal_from(params, check_mode)
    if goal.intent == READ:
        return read(client, goal, params["all_pages"], check_mode)
    return Engine(client, goal, Waiting(client, limits, lock_timeout), check_mode).run()


def main() -> None:
    ControlModule(
        argument_spec={
            "method": {"type": "str", "choices": ["GET", "POST", "PATCH", "PUT", "DELETE"], "default": "GET"},
            "path": {"type": "str", "required": True},
            "query": {"type": "dict"},
            "body": {"type": "dict"},
            "status_code": {"type": "list", "elements": "int"},
            "find": {
                "type": "dict",
                "options": {
                    "path": {"type": "str"},
                    "list": {"type": "str"},
                    "match": {"type": "dict"},
                    "query": {"type": "dict"},
                },
            },
            "all_pages": {"type": "bool", "default": False},
            "wait": {"type": "bool", "default": True},
            "lock_timeout": {"type": "raw", "default": 300},
            "secret_fields": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "expose_secrets": {"type": "bool", "default": False, "no_log": False},
            **WAIT_OPTIONS,
        },
    ).run(run)


if __name__ == "__main__":
    main()
