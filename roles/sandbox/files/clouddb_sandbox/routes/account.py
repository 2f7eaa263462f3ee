# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that clients of the public service send before others. The sandbox has one user, one organization, and no shared projects."""

from __future__ import annotations

from fastapi import APIRouter

from ..paths import BASE_PATH
from ..response_models import OrganizationListResponse, SharedProjectsResponse, User
from .dependencies import error_responses

router = APIRouter(prefix=BASE_PATH, tags=["Account"])


@router.get("/users/me", responses=error_responses())
def get_user() -> User:
    """Returns the user."""
    return User()


@router.get("/users/me/organizations", responses=error_responses())
def list_organizations() -> OrganizationListResponse:
    """Lists the organizations of the user, or of the key: one."""
    return OrganizationListResponse()


@router.get("/projects/shared", responses=error_responses())
def list_shared_projects() -> SharedProjectsResponse:
    """Lists projects that other accounts share: none."""
    return SharedProjectsResponse()
