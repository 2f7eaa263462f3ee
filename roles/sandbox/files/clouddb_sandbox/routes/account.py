# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that clients of the public service send before others. The sandbox has one user, one organization, and no shared projects."""

from __future__ import annotations

from fastapi import APIRouter

from .. import projects
from ..paths import BASE_PATH
from ..response_models import (
    Organization,
    OrganizationListResponse,
    Region,
    RegionListResponse,
    SharedProjectsResponse,
    User,
)
from ..rules import REGIONS
from .dependencies import SandboxDependency, error_responses

router = APIRouter(prefix=BASE_PATH, tags=["Account"])


@router.get("/users/me", responses=error_responses())
def get_user() -> User:
    """Returns the user."""
    return User()


@router.get("/users/me/organizations", responses=error_responses())
def list_organizations(sandbox: SandboxDependency) -> OrganizationListResponse:
    """Lists the organizations of the user: one, and those that the seed's projects belong to."""
    with sandbox.store.transaction() as tx:
        ids = projects.organizations(tx)
    return OrganizationListResponse(
        organizations=[Organization(), *(Organization(id=org_id, handle=org_id, name=org_id) for org_id in ids[1:])]
    )


@router.get("/regions", responses=error_responses())
def list_regions() -> RegionListResponse:
    """Lists the regions that projects can be created in."""
    regions = [
        Region(region_id=region_id, name=name, default=region_id == projects.DEFAULT_REGION)
        for region_id, name in REGIONS.items()
    ]
    return RegionListResponse(regions=regions)


@router.get("/projects/shared", responses=error_responses())
def list_shared_projects() -> SharedProjectsResponse:
    """Lists projects that other accounts share: none."""
    return SharedProjectsResponse()
