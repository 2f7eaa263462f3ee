# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the sandbox refuses, limits and answers as the service does: one table of rules, each with its source.

A source is a section of api.md, the contract; a schema or a path of the published OpenAPI document; a page of the
service's documentation; or a recorded answer. Where sources differ, that is their order. Its README shows the
table, and tests/unit/sandbox/test_rules.py tests each rule: as rows of REFUSALS with its name, or as test_NAME.
"""

from __future__ import annotations

from typing import NamedTuple

from .clock import SECOND

DOCS = "https://neon.com/docs"

REGIONS = {
    "aws-us-east-1": "AWS US East 1 (N. Virginia)",
    "aws-us-east-2": "AWS US East 2 (Ohio)",
    "aws-us-west-2": "AWS US West 2 (Oregon)",
    "aws-eu-central-1": "AWS Europe Central 1 (Frankfurt)",
    "aws-eu-west-2": "AWS Europe West 2 (London)",
    "aws-ap-southeast-1": "AWS Asia Pacific 1 (Singapore)",
    "aws-ap-southeast-2": "AWS Asia Pacific 2 (Sydney)",
    "aws-sa-east-1": "AWS South America East 1 (Sao Paulo)",
}
PROTECTED_ROLE_NAMES = frozenset({"neon_superuser", "cloud_admin", "zenith_admin", "public", "none"})
PROTECTED_ROLE_PREFIX = "pg_"
RESERVED_DATABASE_NAMES = frozenset({"postgres", "template0", "template1"})
MAX_ROLE_NAME_BYTES = 63
MAX_AUTOSCALING_RANGE = 8
MAX_AUTOSCALING_LIMIT = 16
MAX_FIXED_SIZE = 56
RECOVERY_WINDOW = 7 * 86400 * SECOND
ACCOUNT_PATHS = ("/api_keys", "/users/me", "/regions")

LOCKED = "project already has running conflicting operations, scheduling of new ones is prohibited"
NOT_FOR_ORGANIZATIONS = "not allowed for organization API keys"
OUTSIDE_THE_PROJECT = "not allowed to perform actions outside the project this key is scoped to"
NOT_ITS_PROJECT = "not allowed to delete the project this key is scoped to"
ORG_ID_REQUIRED = "org_id is required, you can find it on your organization settings page"
NO_ROUTE = "this route does not exist"


class Rule(NamedTuple):
    """A rule and where it comes from."""

    name: str
    rule: str
    source: str


RULES = (
    Rule(
        "fields_of_bodies",
        "A body has the types and bounds of its schema: names, numbers, quotas, `settings`. Anything else gets 400",
        "document, schemas `ProjectCreateRequest`, `ProjectSettingsData`, `EndpointSettingsData` and the other `…Request`",
    ),
    Rule(
        "unknown_fields",
        "A field that the schema does not have is dropped. It is neither stored nor returned",
        "document, the same schemas: they list all fields of a resource, and those of `settings`",
    ),
    Rule(
        "key_names",
        "A key has a name of at most 64 characters",
        "api.md, POST /api_keys; document, `ApiKeyCreateRequest`",
    ),
    Rule("regions", "A project is created in a region of the list only", f"{DOCS}/introduction/regions"),
    Rule(
        "organizations",
        "`org_id` names an organization that exists, or the request gets 404, lists included",
        "document, `GET /projects`, `POST /projects`: projects belong to an organization",
    ),
    Rule(
        "org_of_the_key",
        "A key of an organization implies `org_id`: only projects of that organization are listed, and created in it",
        "document, `GET /projects`, `POST /projects`",
    ),
    Rule(
        "org_key_on_account_paths",
        "A key of an organization gets 404 `not allowed for organization API keys` on `/api_keys`, `/users/me` and `/regions`,"
        " and below them",
        "recorded: neondatabase/neon-pkgs, packages/sdk/e2e/errors.e2e.test.ts",
    ),
    Rule(
        "project_key_elsewhere",
        "A key limited to a project gets 404 everywhere else, control endpoints included",
        "document, `OrgApiKeyCreateRequest`; recorded: neondatabase/neon-pkgs, packages/sdk/e2e",
    ),
    Rule(
        "project_key_deletes_no_project",
        "A key limited to a project gets 404 to the deletion of this project",
        f"{DOCS}/manage/api-keys: such a key cannot delete its project; 404 as for what is outside it",
    ),
    Rule(
        "pages_of_projects",
        "Ten projects a page without `limit`, 400 at most; more gets 400. The cursor is the last project's id",
        "document, `GET /projects`; recorded: list of projects, September 2025, with such a cursor",
    ),
    Rule("search_for_projects", "`search` finds projects by a part of the name or id", "document, `GET /projects`"),
    Rule(
        "pages_of_operations",
        "At most 1000 operations a page, newest first; the cursor is like a timestamp",
        "api.md, GET /projects/{project_id}/operations; document, same path",
    ),
    Rule(
        "pages_of_branches",
        "At most 10,000 branches a page; `search`, `sort_by`, `sort_order`; by default the last updated comes first. Of a page"
        " that is not the last, `next` is the cursor",
        "document, `GET /projects/{project_id}/branches`",
    ),
    Rule(
        "compute_of_a_new_branch",
        "A new branch has a compute that starts, unless `endpoints` is an empty list",
        "api.md, Operations returned by other requests (the document: without `endpoints`, none)",
    ),
    Rule(
        "compute_sizes",
        "The smallest size of a compute is 0.25, its minimum does not exceed its maximum, and they differ by at most 8. The largest"
        " maximum is 16, or 56 if it equals the minimum. So are those of `default_endpoint_settings`",
        f"document, `ComputeUnit`; {DOCS}/introduction/autoscaling; {DOCS}/manage/endpoints",
    ),
    Rule(
        "parts_of_settings",
        "A part of `settings`, such as `quota` or `pg_settings`, is replaced by the one that is given. Other parts stay",
        "recorded: neondatabase/neon, issue 7628",
    ),
    Rule(
        "disabled_computes",
        "An active compute that is disabled is suspended",
        "document, `EndpointUpdateRequest`: `disabled`",
    ),
    Rule(
        "owner_of_a_new_project",
        "Without `role_name`, the role of a new project is `DATABASE_owner`",
        "document, `ProjectCreateRequest`: `role_name`",
    ),
    Rule(
        "computes_of_a_branch",
        "A branch has at most one read-write compute, in the region of its project",
        "document, `POST /projects/{project_id}/endpoints`; `EndpointCreateRequest`: `region_id`",
    ),
    Rule("suspend_timeout", "-1, 0, or 60 to 604,800 seconds", "document, `SuspendTimeoutSeconds`"),
    Rule(
        "protected_role_names",
        "A role is not called `neon_superuser`, `cloud_admin`, `zenith_admin`, `public` or `none`, nor does its name begin with `pg_`",
        f"{DOCS}/manage/roles#protected-role-names",
    ),
    Rule(
        "reserved_database_names",
        "A database is not called `postgres`, `template0` or `template1`",
        f"{DOCS}/manage/databases#reserved-database-names",
    ),
    Rule("role_name_length", "A role's name has at most 63 bytes", "document, `RoleCreateRequest`"),
    Rule(
        "stored_passwords",
        "412 to `reveal_password` in a project with `store_passwords: false`",
        "document, `GET /projects/{project_id}/branches/{branch_id}/roles/{role_name}/reveal_password`",
    ),
    Rule(
        "owner_of_a_database",
        "A role that owns a database is not deleted. The message names its databases",
        f"{DOCS}/manage/roles#delete-a-role",
    ),
    Rule(
        "deletions_of_branches",
        "The default branch and a branch with children are not deleted, nor is the root branch of a project, unless a snapshot was"
        " restored in its place. Other branches without a parent are",
        f"document, `DELETE …/branches/{{branch_id}}`; {DOCS}/manage/branches#root-branch; {DOCS}/ai/ai-database-versioning",
    ),
    Rule(
        "protected_branches",
        "A protected branch is not deleted and not restored, its computes and its project are not deleted",
        f"{DOCS}/guides/protected-branches",
    ),
    Rule(
        "restricted_actions",
        "`restricted_actions` of a protected branch are `restore` and `delete-rw-endpoint`, with the reason",
        "document, `Branch`, `BranchRestrictedAction`",
    ),
    Rule(
        "passwords_from_protected_branches",
        "A branch created from a protected one has new passwords; a restore from a protected one keeps those that a branch has",
        f"{DOCS}/guides/protected-branches",
    ),
    Rule(
        "expiration",
        "`expires_at` is in the future and at most 30 days ahead; neither the default branch, a protected one nor a parent expires."
        " A restore begins the interval again",
        f"{DOCS}/guides/branch-expiration; document, `Branch`: `ttl_interval_seconds`",
    ),
    Rule(
        "history_of_a_branch",
        "A branch is created from, or restored to, a time since the project and the source were created, within the history retention",
        f"{DOCS}/introduction/restore-window; document, `BranchCreateRequest`: a point in time on the parent",
    ),
    Rule(
        "restore_to_itself",
        "A branch restored from its own history needs a time or sequence number, and like one with children `preserve_under_name`",
        "document, `BranchRestoreRequest`",
    ),
    Rule(
        "operations_of_a_restore",
        "Without `preserve_under_name`, a restore also starts `delete_timeline` on the branch, for its previous state",
        f"{DOCS}/reference/api, Restore branch: its example",
    ),
    Rule(
        "locked",
        "A write that conflicts with an unfinished operation gets 423 with an empty `code`, and is not carried out",
        "recorded: neondatabase/neon, test_runner/random_ops",
    ),
    Rule("codes", "`code` is empty unless the answer has a published one", "document, `ErrorCode`: its default"),
    Rule(
        "malformed_ids",
        "404 `this route does not exist` for a project id that cannot be one",
        "document, pattern of `project_id`; recorded with that text",
    ),
    Rule(
        "evidence",
        "A change shows: `last_reset_at` of a branch, `started_at` and `suspended_at` of a compute, `updated_at` of a role",
        "document, `Branch`, `Endpoint`, `Role`",
    ),
    Rule(
        "members",
        "A member has a role of the schema; the last admin of an organization is not removed",
        "document, `MemberRole`, `DELETE /organizations/{org_id}/members/{member_id}`",
    ),
    Rule(
        "permissions",
        "A project is shared with an email address. The response to a revocation has `revoked_at`",
        "document, `GrantPermissionToProjectRequest`, `ProjectPermission`",
    ),
    Rule(
        "recovery_of_a_project",
        "A deleted project can be recovered for seven days, with its branches, computes and passwords. `recoverable` lists such projects,"
        " with `recoverable_until`",
        "document, `DELETE /projects/{project_id}`, `POST /projects/{project_id}/recover`",
    ),
    Rule(
        "recovery_of_a_branch",
        "A deleted branch can be recovered for seven days, with its computes, which are idle. It no longer expires. `include_deleted` lists"
        " such branches, with `recovery`; one deleted with `hard_delete` cannot be recovered",
        "document, `DELETE …/branches/{branch_id}`, `POST …/branches/{branch_id}/recover`, `BranchRecoveryInfo`",
    ),
    Rule(
        "snapshots_of_root_branches",
        "Only a root branch has snapshots and a backup schedule. A snapshot may be of a time in its history, and expires in the future",
        f"{DOCS}/guides/backup-restore; document, `POST …/branches/{{branch_id}}/snapshot`",
    ),
    Rule(
        "backup_schedules",
        "A backup schedule is daily, weekly or monthly, with an hour, and a day unless it is daily. Its snapshots are kept for 35 days,"
        " or less",
        f"{DOCS}/guides/backup-restore, Set backup schedule; the validator of kislerdm/terraform-provider-neon",
    ),
    Rule(
        "operations_of_a_snapshot",
        "The operations of a snapshot, `create_branch` and `timeline_archive`, are about a branch of its own, which no list shows",
        f"{DOCS}/reference/api, Create snapshot: its example",
    ),
    Rule(
        "times_of_a_snapshot",
        "A timestamp and an LSN are mutually exclusive",
        f"{DOCS}/guides/backup-restore, Create snapshots manually; document, `POST …/branches/{{branch_id}}/snapshot`: `lsn`",
    ),
    Rule(
        "changes_of_a_snapshot",
        "The name and the expiration of a snapshot can be changed; null removes the expiration",
        f"{DOCS}/reference/api, Update snapshot; document, `SnapshotUpdateRequest`, without the expiration",
    ),
    Rule(
        "restore_of_a_snapshot",
        "A snapshot is restored to a new root branch. When that is finalized, it gets the name, computes, protection and schedule of its"
        " target, which is renamed to `NAME (old)` and keeps its id, its children and its snapshots",
        f"document, `POST …/snapshots/{{snapshot_id}}/restore`, `POST …/finalize_restore`; {DOCS}/guides/backup-restore",
    ),
    Rule(
        "finalized_restores",
        "Only a branch that was restored from a snapshot without being finalized is finalized",
        "document, `POST …/branches/{branch_id}/finalize_restore`",
    ),
    Rule(
        "history_after_a_snapshot",
        "A branch restored from a snapshot is not restored from its own history: `restore from snapshot on target branch is still ongoing`",
        f"{DOCS}/guides/backup-restore#limitations",
    ),
    Rule(
        "snapshots_limit",
        "The limit of snapshots has the text `snapshots limit exceeded` and, as none is published, no `code`",
        "recorded: five projects on the Free plan, September and October 2026",
    ),
    Rule(
        "usage",
        "`GET /projects/{project_id}` has the usage of the current period and its bounds, and the quota in `settings`",
        "document, `Project`, `ProjectQuota`",
    ),
)


class Answer(NamedTuple):
    """A recorded answer, which a fault gives."""

    status: int
    message: str
    source: str


RANDOM_OPERATIONS = "recorded: neondatabase/neon, test_runner/random_ops"
ANSWERS = {
    "branch_not_ready": Answer(422, "branch not ready yet", RANDOM_OPERATIONS),
    "endpoint_busy": Answer(423, "endpoint is in some transitive state, could not suspend", RANDOM_OPERATIONS),
    "locked": Answer(423, LOCKED, RANDOM_OPERATIONS),
    "timeout": Answer(524, "<html><body>error code: 524</body></html>", RANDOM_OPERATIONS),
    "plan": Answer(
        412,
        "suspend interval is too short for your plan",
        "recorded: answers to POST branches and PATCH endpoints, September 2026",
    ),
    "rate_limit": Answer(
        429, "rate limit exceeded", "recorded: pytest-neon, which plans for a 429 without Retry-After"
    ),
    "no_route": Answer(404, NO_ROUTE, "recorded: answer to a malformed project id, September 2026"),
    "organization_key": Answer(
        404, NOT_FOR_ORGANIZATIONS, "recorded: neondatabase/neon-pkgs, packages/sdk/e2e/errors.e2e.test.ts"
    ),
    "not_in_plan": Answer(
        403, "this endpoint is not available for your plan", "recorded: `/consumption_history` below the Scale plan"
    ),
}


def table() -> str:
    """Return the rules as the table of the README."""
    rows = [f"| {rule.rule} | {rule.source} |" for rule in RULES]
    return "\n".join(["| rule | source |", "|---|---|", *rows])


def answers_table() -> str:
    """Return the recorded answers as the table of the README."""
    rows = [
        f"| `{name}` | {answer.status} | {'HTML' if answer.message.startswith('<') else answer.message} | {answer.source} |"
        for name, answer in ANSWERS.items()
    ]
    return "\n".join(["| answer | status | message | source |", "|---|---|---|---|", *rows])
