# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loading of the seed into a new database."""

from __future__ import annotations

import random
from typing import Any

from . import branches, computes, databases, identifiers, keys, operations, permissions, projects, roles
from .clock import to_microseconds
from .lifecycle import ACTIONS, DEFAULT_TIMELINES, timeline_to
from .request_models import DefaultBranch
from .response_models import ORGANIZATION_ID
from .seed_models import Generate, Seed, SeedKey, SeedOperation, SeedProject
from .store import Transaction

ACTIONS_OF_COMPUTES = ("apply_config", "check_availability", "start_compute", "suspend_compute")
ADDRESS_OF_USES = "127.0.0.1"
GENERATED_FAILURE_INTERVAL = 50
# The tables with a generated project, parents first, and the column that says whose a row is.
COPIED_TABLES = {
    "projects": "id",
    "branches": "project_id",
    "roles": "branch_id",
    "databases": "branch_id",
    "endpoints": "project_id",
    "operations": "project_id",
}


def load_seed(tx: Transaction, seed: Seed) -> None:
    """Create the seed's resources. Ids that it does not set are the same for every load of the same seed."""
    for key in seed.api_keys:
        load_key(tx, key)
    rng = random.Random(0)
    for project in seed.projects:
        load_project(tx, project, rng)
    if seed.generate.projects:
        generate_projects(tx, seed.generate, rng)
    permissions.insert_admins(tx, projects.organizations(tx), rng)
    for member in seed.members:
        permissions.insert_member(tx, ORGANIZATION_ID, member.email, member.role, rng)


def load_key(tx: Transaction, key: SeedKey) -> None:
    """Create a key. Unless the seed dates it, it is as old as its last use."""
    last_used_at = key.last_use_time(tx.now)
    created = keys.create(tx, key.name, key.key, key.creation_time(tx.now) or last_used_at)
    if last_used_at is not None:
        keys.record_use(tx, created.id, last_used_at, ADDRESS_OF_USES)


def generate_projects(tx: Transaction, generate: Generate, rng: random.Random) -> None:
    """Create the first project like any other, and copy its rows for the others, in a tenth of the time."""
    name = "project-{:04d}"
    project_id = load_project(
        tx, SeedProject(name=name.format(1), generate_operations=generate.operations_per_project), rng
    )
    branch = branches.get(tx, project_id, None)
    [compute] = computes.list_of_branch(tx, branch.id)
    [database] = databases.list_all(tx, branch.id)
    password = roles.get(tx, branch.id, database.owner_name).password
    parents = {"id": project_id, "project_id": project_id, "branch_id": branch.id}
    rows = {table: rows_of(tx, table, key, parents[key]) for table, key in COPIED_TABLES.items()}
    operation_ids = [row["id"] for row in rows["operations"]]
    for number in range(2, generate.projects + 1):
        changed = {
            name.format(1): name.format(number),
            project_id: identifiers.project_id(rng),
            branch.id: identifiers.branch_id(rng),
            compute.id: identifiers.endpoint_id(rng),
            password: roles.generate_password(),
            **{operation_id: identifiers.operation_id(rng) for operation_id in operation_ids},
        }
        for table, copied in rows.items():
            for row in copied:
                tx.insert(table, {column: changed.get(value, value) for column, value in row.items()})


def rows_of(tx: Transaction, table: str, key: str, parent_id: str) -> list[dict[str, Any]]:
    """Return these rows, without the numbers that the database gives them."""
    numbered = "id" if table == "databases" else "seq"
    return [{name: row[name] for name in row if name != numbered} for row in tx.rows(table, key, parent_id)]


def load_project(tx: Transaction, project: SeedProject, rng: random.Random) -> str:
    """Create a project. Unless the seed dates it, it is as old as its oldest operation. Returns its id."""
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
    return project_id


def generate_operation(number: int) -> SeedOperation:
    """Generate operations one minute apart, newest first: all actions in turn, every 50th failed."""
    action = ACTIONS[number % len(ACTIONS)]
    age = 60.0 * (number + 1)
    if (number + 1) % GENERATED_FAILURE_INTERVAL == 0:
        return SeedOperation(action=action, age=age, status="failed")
    return SeedOperation(action=action, age=age, timeline=DEFAULT_TIMELINES[action])
