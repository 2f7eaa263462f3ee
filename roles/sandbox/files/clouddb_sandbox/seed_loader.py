# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loading of the seed into a new database."""

from __future__ import annotations

import random

from . import branches, computes, identifiers, keys, operations, permissions, projects
from .clock import to_microseconds
from .lifecycle import ACTIONS, DEFAULT_TIMELINES, timeline_to
from .request_models import DefaultBranch
from .response_models import ORGANIZATION_ID
from .seed_models import Seed, SeedKey, SeedOperation, SeedProject
from .store import Transaction

ACTIONS_OF_COMPUTES = ("apply_config", "check_availability", "start_compute", "suspend_compute")
ADDRESS_OF_USES = "127.0.0.1"
GENERATED_FAILURE_INTERVAL = 50


def load_seed(tx: Transaction, seed: Seed) -> None:
    """Create the seed's resources. Ids that it does not set are the same for every load of the same seed."""
    for key in seed.api_keys:
        load_key(tx, key)
    rng = random.Random(0)
    for project in seed.projects:
        load_project(tx, project, rng)
    for number in range(1, seed.generate.projects + 1):
        generated = SeedProject(name=f"project-{number:04d}", generate_operations=seed.generate.operations_per_project)
        load_project(tx, generated, rng)
    permissions.insert_admins(tx, projects.organizations(tx), rng)
    for member in seed.members:
        permissions.insert_member(tx, ORGANIZATION_ID, member.email, member.role, rng)


def load_key(tx: Transaction, key: SeedKey) -> None:
    """Create a key. Unless the seed dates it, it is as old as its last use."""
    last_used_at = key.last_use_time(tx.now)
    created = keys.create(tx, key.name, key.key, key.creation_time(tx.now) or last_used_at)
    if last_used_at is not None:
        keys.record_use(tx, created.id, last_used_at, ADDRESS_OF_USES)


def load_project(tx: Transaction, project: SeedProject, rng: random.Random) -> None:
    """Create a project. Unless the seed dates it, it is as old as its oldest operation."""
    generated = [generate_operation(number) for number in range(project.generate_operations)]
    timed = [(operation, operation.creation_time(tx.now) or tx.now) for operation in (*project.operations, *generated)]
    created_at = project.creation_time(tx.now) or min([tx.now, *(created_at for _operation, created_at in timed)])
    fields = project.model_dump(exclude={"age", "compute", "operations", "generate_operations"}) | {
        "id": project.id or identifiers.project_id(rng),
        "created_at": created_at,
        "updated_at": to_microseconds(project.updated_at) if project.updated_at else created_at,
    }
    project_id = projects.insert(tx, fields)
    branch = branches.insert_default(tx, project_id, DefaultBranch(), identifiers.branch_id(rng), created_at)
    endpoint_id = identifiers.endpoint_id(rng) if project.compute else None
    if endpoint_id:
        computes.insert(tx, branch, endpoint_id=endpoint_id, created_at=created_at)
    for operation, operation_created_at in timed:
        operations.insert(
            tx,
            project_id=project_id,
            branch_id=operation.branch_id or branch.id,
            endpoint_id=operation.endpoint_id or (endpoint_id if operation.action in ACTIONS_OF_COMPUTES else None),
            action=operation.action,
            created_at=operation_created_at,
            timeline=operation.timeline or timeline_to(operation.status, operation.duration),
            error=operation.error,
            operation_id=operation.id or identifiers.operation_id(rng),
        )


def generate_operation(number: int) -> SeedOperation:
    """Generate operations one minute apart, newest first: all actions in turn, every 50th failed."""
    action = ACTIONS[number % len(ACTIONS)]
    age = 60.0 * (number + 1)
    if (number + 1) % GENERATED_FAILURE_INTERVAL == 0:
        return SeedOperation(action=action, age=age, status="failed")
    return SeedOperation(action=action, age=age, timeline=DEFAULT_TIMELINES[action])
