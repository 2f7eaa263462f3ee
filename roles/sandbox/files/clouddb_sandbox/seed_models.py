# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The seed file's format: the content of a new account."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import datetime, timezone
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

from .clock import MAX_SECONDS, SECOND, to_microseconds
from .lifecycle import ACTIONS, STATUSES, Timeline, check_timeline
from .request_models import MAX_INTEGER, Email, MemberRole, NonEmptyString, one_of

SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def parse_age(age: Any) -> Any:
    """Convert an age such as 90s, 15m, 24h, 7d or 2w, or a number of seconds, to seconds. Raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw]?)", age.strip()) if isinstance(age, str) else None
    if match:
        return float(match[1]) * SECONDS_PER_UNIT.get(match[2], 1)
    if age is None or (isinstance(age, (int, float)) and not isinstance(age, bool) and 0 <= age < math.inf):
        return age
    raise ValueError(f"must be a number of seconds, or an age such as 90s, 15m, 24h, 7d or 2w, not {age!r}")


Age = Annotated[float, BeforeValidator(parse_age), Field(le=MAX_SECONDS)]
Date = Annotated[
    AwareDatetime, Field(ge=datetime(1000, 1, 1, tzinfo=timezone.utc), le=datetime(9999, 12, 31, tzinfo=timezone.utc))
]
Integer = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
# The ids that the modules accept.
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")]
Count = Annotated[int, Field(ge=0, le=100_000)]


class SeedModel(BaseModel):
    """Base class of the seed's resources. An unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class TimedSeedModel(SeedModel):
    """A resource whose creation time is given as a date or as an age."""

    age: Age | None = None
    created_at: Date | None = None

    @model_validator(mode="after")
    def check_one_creation_time(self) -> TimedSeedModel:
        if self.age is not None and self.created_at is not None:
            raise ValueError("age and created_at are mutually exclusive")
        return self

    def creation_time(self, now: int) -> int | None:
        """Return the creation time in microseconds, or None if the seed does not set it."""
        if self.age is not None:
            return now - int(self.age * SECOND)
        return to_microseconds(self.created_at) if self.created_at else None


class SeedKey(TimedSeedModel):
    """A key, and how long ago it was last used. A key without `last_used` was never used."""

    name: NonEmptyString
    key: Annotated[str, Field(min_length=16, pattern=r"^[\x21-\x7e]*$")] | None = None
    last_used: Age | None = None

    @model_validator(mode="after")
    def check_used_after_creation(self) -> SeedKey:
        if self.last_used is not None and self.age is not None and self.last_used > self.age:
            raise ValueError("last_used must not be longer ago than age")
        return self

    def last_use_time(self, now: int) -> int | None:
        """Return the time of the last use in microseconds, or None if the key was never used."""
        return None if self.last_used is None else now - int(self.last_used * SECOND)


class SeedOperation(TimedSeedModel):
    """An operation that reaches `status` after `duration` seconds, or follows `timeline`."""

    id: Id | None = None
    branch_id: Id | None = None
    endpoint_id: Id | None = None
    action: Annotated[str, one_of(*ACTIONS)]
    status: Annotated[str, one_of(*STATUSES)] = "finished"
    duration: Annotated[float, Field(gt=0, le=MAX_SECONDS)] = 1.0
    timeline: Annotated[Timeline, AfterValidator(check_timeline)] | None = None
    error: NonEmptyString | None = None

    @model_validator(mode="after")
    def check_one_timeline(self) -> SeedOperation:
        if self.timeline is not None and self.model_fields_set & {"status", "duration"}:
            raise ValueError("timeline and status or duration are mutually exclusive")
        return self


class SeedProject(TimedSeedModel):
    """A project with any of the API's fields, and its operations. Missing fields get the defaults of a new project."""

    id: Id | None = None
    name: NonEmptyString | None = None
    platform_id: NonEmptyString | None = None
    region_id: NonEmptyString | None = None
    provisioner: NonEmptyString | None = None
    pg_version: Integer | None = None
    locked: bool | None = None
    store_passwords: bool | None = None
    cpu_used_sec: Integer | None = None
    proxy_host: NonEmptyString | None = None
    branch_logical_size_limit: Integer | None = None
    org_id: NonEmptyString | None = None
    history_retention_seconds: Integer | None = None
    settings: dict[str, Any] | None = None
    updated_at: Date | None = None
    compute: bool = True
    operations: list[SeedOperation] = []
    generate_operations: Count = 0


class SeedMember(SeedModel):
    """A member of the account's organization, in addition to its user."""

    email: Email
    role: MemberRole = "member"


class Generate(SeedModel):
    """Number of generated projects, and of generated operations in each."""

    projects: Count = 0
    operations_per_project: Count = 0


class Seed(SeedModel):
    api_keys: list[SeedKey] = []
    members: list[SeedMember] = []
    projects: list[SeedProject] = []
    generate: Generate = Generate()
    require_org_id: bool = False

    @model_validator(mode="after")
    def check_unique(self) -> Seed:
        require_unique("projects: id", [project.id for project in self.projects])
        operation_ids = [operation.id for project in self.projects for operation in project.operations]
        require_unique("projects: operations: id", operation_ids)
        require_unique("api_keys: key", [key.key for key in self.api_keys], show=False)
        return self


def require_unique(field: str, values: list[str | None], show: bool = True) -> None:
    repeated = sorted(value for value, count in Counter(values).items() if value is not None and count > 1)
    if repeated and show:
        raise ValueError(f"{field}: must be unique, but {', '.join(repeated)} occurs more than once")
    if repeated:
        raise ValueError(f"{field}: must be unique, but a value occurs more than once")


def validate_seed(data: Any) -> Seed:
    """Return the validated seed. Raises ValueError with each invalid field, without values that may be secrets."""
    try:
        return Seed.model_validate(data)
    except ValidationError as error:
        messages = [
            f"{'.'.join(map(str, details['loc'])) or 'seed'}: {details['msg'].removeprefix('Value error, ')}"
            for details in error.errors(include_input=False, include_url=False)
        ]
        raise ValueError("\n".join(["The seed is invalid.", *messages])) from None
