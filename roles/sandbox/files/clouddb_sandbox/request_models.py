# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bodies of the API's requests, and the base classes of all request models."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, model_validator

# The range of an SQLite integer.
MAX_INTEGER = 2**63 - 1
MAX_HISTORY_RETENTION = 30 * 86400
MAX_SNAPSHOT_RETENTION = 35 * 86400
# Deeper than any body of the API, and far from what Python's parsers can process.
MAX_DEPTH = 50
AUTOSCALING_LIMITS = ("autoscaling_limit_min_cu", "autoscaling_limit_max_cu")

HeaderValue = Annotated[str, Field(pattern=r"^([\x21-\x7e\x80-\xff]+([ \t]+[\x21-\x7e\x80-\xff]+)*)?$")]
HistoryRetention = Annotated[int, Field(ge=0, le=MAX_HISTORY_RETENTION)]
NonEmptyString = Annotated[str, Field(min_length=1)]
# The maximum lengths of the public service.
KeyName = Annotated[str, Field(min_length=1, max_length=64)]
Name = Annotated[str, Field(min_length=1, max_length=256)]
Date = Annotated[AwareDatetime, Field(strict=False)]
Lsn = Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$")]
ComputeUnits = Annotated[float, Field(ge=0.25)]


def one_of(*choices: str) -> AfterValidator:
    """Return a validator of a text that must be one of the choices."""

    def check(value: str) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return value

    return AfterValidator(check)


def check_depth(body: Any) -> None:
    """Raise ValueError if lists and objects are nested too deeply."""
    level = [body]
    for _level in range(MAX_DEPTH):
        nested = [value for value in level if isinstance(value, (dict, list))]
        level = [child for value in nested for child in (value.values() if isinstance(value, dict) else value)]
        if not level:
            return
    raise ValueError(f"the body is nested more than {MAX_DEPTH} levels deep")


def check_suspend_timeout(seconds: int) -> int:
    """Raise ValueError unless this is at least a minute, -1 for never, or 0 for the default."""
    if 0 < seconds < 60:
        raise ValueError("must be -1, 0, or at least 60 seconds")
    return seconds


SuspendTimeout = Annotated[
    int,
    Field(ge=-1, le=604_800, json_schema_extra={"not": {"minimum": 1, "maximum": 59}}),
    AfterValidator(check_suspend_timeout),
]
Id = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,60}$")]
TimeOfDay = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
Quantity = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


# In JavaScript, whose patterns OpenAPI has, \s does not include U+0085, and here not U+FEFF.
Email = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^@\s\u0085\ufeff]+@[^@\s\u0085\ufeff]+$")]
MemberRole = Literal["admin", "member", "editor", "viewer", "collaborator"]


class RequestModel(BaseModel):
    """Base class of the API's request bodies. Types are not converted; unknown fields are dropped."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def check_json(cls, body: Any) -> Any:
        """Reject NaN, Infinity and lone surrogates, which Python's parser accepts. Turn 7.0 into an integer, as JSON does."""
        check_depth(body)
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, default=str)
        text.encode()
        return json.loads(text, parse_float=parse_number)


def parse_number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


class ControlRequestModel(RequestModel):
    """Base class of the control endpoints' request bodies. An unknown field is an error, because it is a typo in a test."""

    model_config = ConfigDict(extra="forbid")


class ApiKeyCreateRequest(RequestModel):
    key_name: KeyName


class OrgApiKeyCreateRequest(ApiKeyCreateRequest):
    project_id: Id | None = None


class Quota(RequestModel):
    active_time_seconds: Quantity | None = None
    compute_time_seconds: Quantity | None = None
    written_data_bytes: Quantity | None = None
    data_transfer_bytes: Quantity | None = None
    logical_size_bytes: Quantity | None = None


class AllowedIps(RequestModel):
    ips: list[str] | None = None
    protected_branches_only: bool | None = None


class MaintenanceWindow(RequestModel):
    weekdays: list[Annotated[int, Field(ge=1, le=7)]]
    start_time: TimeOfDay
    end_time: TimeOfDay


class PreloadLibraries(RequestModel):
    use_defaults: bool | None = None
    enabled_libraries: list[str] | None = None


class ProjectSettings(RequestModel):
    quota: Quota | None = None
    allowed_ips: AllowedIps | None = None
    enable_logical_replication: bool | None = None
    maintenance_window: MaintenanceWindow | None = None
    block_public_connections: bool | None = None
    block_vpc_connections: bool | None = None
    audit_log_level: Literal["base", "extended", "full"] | None = None
    hipaa: bool | None = None
    preload_libraries: PreloadLibraries | None = None


class ComputeSettings(RequestModel):
    pg_settings: dict[str, str] | None = None
    pgbouncer_settings: dict[str, str] | None = None
    preload_libraries: PreloadLibraries | None = None


class DefaultComputeSettings(RequestModel):
    pg_settings: dict[str, str] | None = None
    pgbouncer_settings: dict[str, str] | None = None
    autoscaling_limit_min_cu: ComputeUnits | None = None
    autoscaling_limit_max_cu: ComputeUnits | None = None
    suspend_timeout_seconds: SuspendTimeout | None = None


class DefaultBranch(RequestModel):
    name: Name | None = None
    role_name: NonEmptyString | None = None
    database_name: NonEmptyString | None = None


class NewProject(RequestModel):
    name: Name | None = None
    region_id: NonEmptyString | None = None
    pg_version: int | None = Field(default=None, ge=14, le=18)
    org_id: Id | None = None
    history_retention_seconds: HistoryRetention | None = None
    settings: ProjectSettings | None = None
    autoscaling_limit_min_cu: ComputeUnits | None = None
    autoscaling_limit_max_cu: ComputeUnits | None = None
    provisioner: NonEmptyString | None = None
    store_passwords: bool | None = None
    default_endpoint_settings: DefaultComputeSettings | None = None
    branch: DefaultBranch = DefaultBranch()

    def columns(self) -> dict[str, Any]:
        """Return the fields as a project has them: the deprecated limits are among the default settings of computes."""
        fields = self.model_dump(exclude={"branch"}, exclude_none=True)
        limits = {name: fields.pop(name) for name in AUTOSCALING_LIMITS if name in fields}
        fields["default_endpoint_settings"] = limits | fields.get("default_endpoint_settings", {})
        return fields


class ProjectCreateRequest(RequestModel):
    project: NewProject


class ProjectChanges(RequestModel):
    name: Name | None = None
    history_retention_seconds: HistoryRetention | None = None
    settings: ProjectSettings | None = None
    default_endpoint_settings: DefaultComputeSettings | None = None


class ProjectUpdateRequest(RequestModel):
    project: ProjectChanges


class ComputeOptions(RequestModel):
    """Fields that are missing or null stay as they are, or have the service's defaults."""

    autoscaling_limit_min_cu: ComputeUnits | None = None
    autoscaling_limit_max_cu: ComputeUnits | None = None
    suspend_timeout_seconds: SuspendTimeout | None = None
    settings: ComputeSettings | None = None
    provisioner: NonEmptyString | None = None


class ComputeChanges(ComputeOptions):
    name: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    disabled: bool | None = None
    pooler_enabled: bool | None = None
    pooler_mode: Literal["transaction"] | None = None
    passwordless_access: bool | None = None


class ComputeUpdateRequest(RequestModel):
    endpoint: ComputeChanges


class NewCompute(ComputeOptions):
    type: Literal["read_only", "read_write"]


class NewComputeOfBranch(NewCompute, ComputeChanges):
    branch_id: Id
    region_id: str | None = None


class ComputeCreateRequest(RequestModel):
    endpoint: NewComputeOfBranch


class BranchChanges(RequestModel):
    """Fields that are missing stay as they are, as do those that are null, except `expires_at`: such a branch does not expire."""

    name: Name | None = None
    protected: bool | None = None
    expires_at: Date | None = None


class NewBranch(BranchChanges):
    parent_id: Id | None = None
    parent_timestamp: Date | None = None
    parent_lsn: Lsn | None = None
    init_source: Literal["schema-only", "parent-data"] = "parent-data"


class BranchCreateRequest(RequestModel):
    branch: NewBranch = NewBranch()
    endpoints: list[NewCompute] = Field(
        default=[NewCompute(type="read_write")], description="computes of the branch; none with an empty list"
    )


class BranchRestoreRequest(RequestModel):
    source_branch_id: Id
    source_timestamp: Date | None = None
    source_lsn: Lsn | None = None
    preserve_under_name: Annotated[str, Field(max_length=256)] | None = None


class BranchUpdateRequest(RequestModel):
    branch: BranchChanges


class FinalizeRestoreRequest(RequestModel):
    name: Name | None = Field(default=None, description="of the branch that is replaced")


class SnapshotChanges(RequestModel):
    """Fields that are missing stay as they are. A snapshot whose `expires_at` is null does not expire."""

    name: Name | None = None
    expires_at: Date | None = None


class SnapshotUpdateRequest(RequestModel):
    snapshot: SnapshotChanges


class SnapshotRestoreRequest(RequestModel):
    name: Name | None = None
    target_branch_id: Id | None = None
    finalize_restore: bool = False


class BackupScheduleItem(RequestModel):
    model_config = ConfigDict(
        json_schema_extra={
            "required": ["frequency", "hour"],
            "allOf": [
                {"properties": {"hour": {"type": "integer"}}},
                {
                    "anyOf": [
                        {"properties": {"frequency": {"const": "daily"}}},
                        {
                            "required": ["day"],
                            "properties": {"frequency": {"const": "weekly"}, "day": {"type": "integer", "maximum": 7}},
                        },
                        {
                            "required": ["day"],
                            "properties": {"frequency": {"const": "monthly"}, "day": {"type": "integer"}},
                        },
                    ]
                },
            ],
        }
    )

    frequency: Literal["daily", "weekly", "monthly"]
    hour: int | None = Field(default=None, ge=0, le=23)
    day: int | None = Field(default=None, ge=1, le=31)
    month: int | None = Field(default=None, ge=1, le=12)
    retention_seconds: int = Field(default=MAX_SNAPSHOT_RETENTION, ge=3600, le=MAX_SNAPSHOT_RETENTION)

    @model_validator(mode="after")
    def check_time(self) -> BackupScheduleItem:
        """Require the hour, and unless it is daily, the day."""
        if self.hour is None:
            raise ValueError(f"{self.frequency} schedules must specify the hour of the day")
        if self.frequency != "daily" and (self.day is None or (self.frequency == "weekly" and self.day > 7)):
            raise ValueError(f"{self.frequency} schedules must specify the day")
        return self


class BackupSchedule(RequestModel):
    schedule: list[BackupScheduleItem]


class NewDatabase(RequestModel):
    name: NonEmptyString
    owner_name: NonEmptyString


class DatabaseCreateRequest(RequestModel):
    database: NewDatabase


class DatabaseChanges(RequestModel):
    """Fields that are missing or null stay as they are."""

    name: NonEmptyString | None = None
    owner_name: NonEmptyString | None = None


class DatabaseUpdateRequest(RequestModel):
    database: DatabaseChanges


class NewRole(RequestModel):
    name: NonEmptyString


class RoleCreateRequest(RequestModel):
    role: NewRole


class MemberUpdateRequest(RequestModel):
    role: MemberRole


class PermissionRequest(RequestModel):
    email: Email
