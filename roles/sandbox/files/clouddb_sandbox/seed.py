# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The seed: what the account holds when its database is new."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from . import keys, names, operations, projects
from .clock import SECOND, moment_of
from .lifecycle import ACTIONS, DEFAULT_TIMELINES, STATUSES, Timeline, check_timeline, timeline_to
from .store import Transaction

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
ON_A_COMPUTE = ("apply_config", "check_availability", "start_compute", "suspend_compute")
FAILED_EVERY = 50


def seconds_of(age: Any) -> Any:
    """Seconds, from a number of them or from an age such as 90s, 15m, 24h, 7d or 2w."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", age) if isinstance(age, str) else None
    return float(found[1]) * UNITS[found[2]] if found else age


def one_of(*choices: str) -> AfterValidator:
    def check(value: str) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return value

    return AfterValidator(check)


Age = Annotated[float, BeforeValidator(seconds_of), Field(ge=0)]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0, le=100_000)]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Dated(Part):
    """Something that was created at a moment, or an age ago."""

    age: Age | None = None
    created_at: AwareDatetime | None = None

    @model_validator(mode="after")
    def check_one_date(self) -> Dated:
        if self.age is not None and self.created_at is not None:
            raise ValueError("age and created_at exclude each other")
        return self

    def created(self, now: int) -> int | None:
        if self.age is not None:
            return now - int(self.age * SECOND)
        return moment_of(self.created_at) if self.created_at else None


class SeedKey(Dated):
    name: Text
    key: Annotated[str, Field(min_length=16)] | None = None


class SeedOperation(Dated):
    """An operation that ends in `status` after `duration` seconds, or goes by `timeline`."""

    id: Text | None = None
    branch_id: Text | None = None
    endpoint_id: Text | None = None
    action: Annotated[str, one_of(*ACTIONS)]
    status: Annotated[str, one_of(*STATUSES)] = "finished"
    duration: Annotated[float, Field(gt=0)] = 1.0
    timeline: Annotated[Timeline, AfterValidator(check_timeline)] | None = None
    error: Text | None = None

    @model_validator(mode="after")
    def check_one_course(self) -> SeedOperation:
        if self.timeline is not None and self.model_fields_set & {"status", "duration"}:
            raise ValueError("timeline excludes status and duration")
        return self


class SeedProject(Dated):
    """A project: any field of the API's, and what belongs to it. What is left out is as in a new project."""

    id: Text | None = None
    name: Text | None = None
    platform_id: Text | None = None
    region_id: Text | None = None
    provisioner: Text | None = None
    pg_version: int | None = None
    locked: bool | None = None
    cpu_used_sec: int | None = None
    proxy_host: Text | None = None
    branch_logical_size_limit: int | None = None
    org_id: Text | None = None
    history_retention_seconds: int | None = None
    updated_at: AwareDatetime | None = None
    compute: bool = True
    operations: list[SeedOperation] = []
    generate_operations: Count = 0


class Generate(Part):
    """Projects made up by number, each with so many operations."""

    projects: Count = 0
    operations_per_project: Count = 0


class Seed(Part):
    api_keys: list[SeedKey] = []
    projects: list[SeedProject] = []
    generate: Generate = Generate()

    @model_validator(mode="after")
    def check_unique(self) -> Seed:
        refuse_twice("projects: id", [project.id for project in self.projects])
        operation_ids = [operation.id for project in self.projects for operation in project.operations]
        refuse_twice("projects: operations: id", operation_ids)
        refuse_twice("api_keys: key", [key.key for key in self.api_keys], show=False)
        return self


def refuse_twice(field: str, values: list[str | None], show: bool = True) -> None:
    twice = sorted(value for value, count in Counter(values).items() if value is not None and count > 1)
    if twice:
        raise ValueError(f"{field}: {', '.join(twice) if show else 'the same value'} is there more than once")


def check_seed(data: Any) -> Seed:
    """The seed in `data`; a ValueError names each field that is wrong, and never shows a value: it may be a key."""
    try:
        return Seed.model_validate(data)
    except ValidationError as error:
        complaints = error.errors(include_input=False, include_url=False)
        raise ValueError(
            "\n".join(f"{'.'.join(map(str, found['loc'])) or 'seed'}: {found['msg']}" for found in complaints)
        ) from None


def sow(tx: Transaction, seed: Seed) -> None:
    for key in seed.api_keys:
        keys.create(tx, key.name, key.key, key.created(tx.now))
    source = random.Random(0)  # what is made up is the same every time
    for project in seed.projects:
        sow_project(tx, project, source)
    for number in range(1, seed.generate.projects + 1):
        made_up = SeedProject(name=f"project-{number:04d}", generate_operations=seed.generate.operations_per_project)
        sow_project(tx, made_up, source)


def sow_project(tx: Transaction, project: SeedProject, source: random.Random) -> None:
    made_up = [made_up_operation(number) for number in range(project.generate_operations)]
    dated = [(operation, operation.created(tx.now) or tx.now) for operation in (*project.operations, *made_up)]
    created_at = project.created(tx.now) or min([tx.now, *(moment for _operation, moment in dated)])
    fields = project.model_dump(exclude={"age", "compute", "operations", "generate_operations"}) | {
        "id": project.id or names.project_id(source),
        "created_at": created_at,
        "updated_at": moment_of(project.updated_at) if project.updated_at else created_at,
    }
    project_id = projects.insert(tx, fields)
    branch = projects.insert_branch(
        tx, project_id, projects.DEFAULT_BRANCH, branch_id=names.branch_id(source), created_at=created_at
    )
    endpoint_id = projects.insert_endpoint(tx, branch, names.endpoint_id(source)).id if project.compute else None
    for operation, moment in dated:
        operations.insert(
            tx,
            project_id=project_id,
            branch_id=operation.branch_id or branch.id,
            endpoint_id=operation.endpoint_id or (endpoint_id if operation.action in ON_A_COMPUTE else None),
            action=operation.action,
            created_at=moment,
            timeline=operation.timeline or timeline_to(operation.status, operation.duration),
            error=operation.error,
            operation_id=operation.id or names.operation_id(source),
        )


def made_up_operation(number: int) -> SeedOperation:
    """One a minute, back in time, every action in turn, one in fifty failed."""
    action = ACTIONS[number % len(ACTIONS)]
    if number % FAILED_EVERY == FAILED_EVERY - 1:
        return SeedOperation(action=action, age=60.0 * (number + 1), status="failed")
    return SeedOperation(action=action, age=60.0 * (number + 1), timeline=DEFAULT_TIMELINES[action])
