# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of databases, as the service returns them, taken apart. Keeps P3, P5, P9 and P11."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from ._errors import InvalidOption
from ._http.client import Client
from ._http.errors import NotFound
from ._http.response import Response
from ._lists import ResourceNotFound, list_resources, there_is_no
from ._options import NOT_CREATED_ID
from ._projects import branch_id_from, project_id_from
from ._untrusted import displayable

SCHEMES = ("postgres", "postgresql")
# In characters. Percent-encoded, it is still a file that can be read again.
MAX_LENGTH = 4096
DEFAULT_PORT = 5432


class Address(NamedTuple):
    """A connection string and its parts, decoded."""

    uri: str
    host: str
    port: int
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Address({self.host!r}, ...)"  # without the password


def find_address(params: Mapping[str, Any], client: Client, check_mode: bool) -> Address | None:
    """The address of the database that the options name; in check mode, None if an earlier task would create it.

    Its secrets are masked in messages and registered. Raises ResourceNotFound, InvalidOption and what Client raises.
    """
    project_id = project_id_from(params, client, may_be_missing=check_mode)
    branch_id = branch_id_from(params["branch"], client, project_id, may_be_missing=check_mode)
    if branch_id == NOT_CREATED_ID:
        return None
    branch = ("projects", project_id, "branches", branch_id)
    try:
        response = _request(params, client.with_secrets(), branch)
    except (NotFound, ResourceNotFound) as error:
        if check_mode:
            return None
        if isinstance(error, NotFound):
            _require_parts(params, client, branch)
        raise
    address = address_in(response)
    client.masker.hide(address.uri, address.password)
    return address


def _request(params: Mapping[str, Any], client: Client, branch: Sequence[str]) -> Response:
    database = params["database"]
    user = params["user"] or client.get(*branch, "databases", database).object("database", owner_name=str)["owner_name"]
    query = {"branch_id": branch[3], "database_name": database, "role_name": user}
    if params["pooled"]:
        query["pooled"] = "true"
    if params["read_only"]:
        query["endpoint_id"] = _read_replica(client, branch)
    return client.get(*branch[:2], "connection_uri", query=query)


def _require_parts(params: Mapping[str, Any], client: Client, branch: Sequence[str]) -> None:
    """Raise ResourceNotFound for the database, the user or the compute that is missing, if the lists show that one is."""
    for option, field in {"database": "databases", "user": "roles"}.items():
        listed = list_resources(client, (*branch, field), field)
        name = params[option]
        if name and name not in listed.names:
            raise there_is_no(option, option, listed, name) from None
    if not _computes(client, branch, "read_write"):
        name = f"branch '{params['branch']}'" if params["branch"] else "the default branch"
        problem = f"branch: {name} has no compute. Create one with the module compute."
        raise ResourceNotFound(problem, {"option": "branch"}) from None


def _computes(client: Client, branch: Sequence[str], kind: str) -> list[dict[str, Any]]:
    from ._resources.state import ABSENT, DELETING, own_state  # a fifth of the files, which few tasks need

    listed = list_resources(client, (*branch, "endpoints"), "endpoints").items
    return [each for each in listed if each.get("type") == kind and own_state(each) not in (ABSENT, DELETING)]


def _read_replica(client: Client, branch: Sequence[str]) -> str:
    """The id of the only read_only compute of the branch. Raises InvalidOption, and ResourceNotFound if there is none."""
    found = _computes(client, branch, "read_only")
    if not found:
        problem = "read_only: the branch has no compute of type read_only. Create one with the module compute."
        raise ResourceNotFound(problem, {"option": "read_only"})
    if len(found) > 1:
        ids = ", ".join(displayable(each["id"], 100) for each in found)
        problem = (
            f"the branch has several computes of type read_only: {ids}. Delete all but one with the module compute."
        )
        raise InvalidOption("read_only", problem)
    return str(found[0]["id"])


def address_in(response: Response) -> Address:
    """The address in the field C(uri). Raises UnexpectedResponse, which quotes nothing of it, for any text that is none."""
    text = response.object(uri=str)["uri"]
    expected = "its field 'uri' should be an address such as postgresql://USER:PASSWORD@HOST/DATABASE"
    if len(text) > MAX_LENGTH or not text.isprintable():
        raise response.unexpected(f"{expected}, on one line and of at most {MAX_LENGTH} characters")
    try:
        parts = urlsplit(text)
        address = Address(
            text,
            parts.hostname or "",
            parts.port or DEFAULT_PORT,
            unquote(parts.username or ""),
            unquote(parts.password or ""),
        )
    except ValueError:
        parts, address = None, Address(text, "", 0, "", "")
    if parts and parts.scheme not in SCHEMES:
        raise response.unexpected(expected)
    if not (address.host and address.user):
        hint = (
            " (a character such as '/', '#', '?' or '[' in the password must be percent-encoded)" if "@" in text else ""
        )
        raise response.unexpected(f"{expected}{hint}")
    if not address.password.strip("*"):
        raise response.unexpected("the address in its field 'uri' has no password, or a mask in its place")
    return address
