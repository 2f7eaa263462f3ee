# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SQLite database of the account. Every change is committed before its response is sent."""

from __future__ import annotations

import copy
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .clock import SECOND, Clock, system_time

SCHEMA_VERSION = 9

# Times are integers: microseconds of sandbox time. `seq` orders rows with the same time.
SCHEMA = (
    """CREATE TABLE clock (
        origin INTEGER NOT NULL, system_origin INTEGER NOT NULL, speed REAL NOT NULL,
        latest INTEGER NOT NULL)""",
    """CREATE TABLE api_keys (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, hash BLOB NOT NULL UNIQUE,
        org_id TEXT, project_id TEXT, created_at INTEGER NOT NULL, last_used_at INTEGER,
        last_used_from_addr TEXT NOT NULL DEFAULT '', revoked_at INTEGER)""",
    """CREATE TABLE projects (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, platform_id TEXT NOT NULL,
        region_id TEXT NOT NULL, provisioner TEXT NOT NULL, pg_version INTEGER NOT NULL, locked INTEGER NOT NULL,
        cpu_used_sec INTEGER NOT NULL, proxy_host TEXT NOT NULL, branch_logical_size_limit INTEGER NOT NULL,
        org_id TEXT NOT NULL, history_retention_seconds INTEGER NOT NULL, settings TEXT NOT NULL,
        default_endpoint_settings TEXT NOT NULL DEFAULT '{}', store_passwords INTEGER NOT NULL DEFAULT 1,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, deleted_at INTEGER)""",
    "CREATE INDEX projects_newest ON projects (created_at, seq)",
    """CREATE TABLE branches (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
        project_id TEXT NOT NULL REFERENCES projects (id), parent_id TEXT REFERENCES branches (id),
        name TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        is_default INTEGER NOT NULL DEFAULT 0, protected INTEGER NOT NULL DEFAULT 0, expires_at INTEGER,
        init_source TEXT NOT NULL DEFAULT 'parent-data', parent_timestamp INTEGER, parent_lsn TEXT,
        last_reset_at INTEGER, ttl_seconds INTEGER, creation_id TEXT, schedule TEXT NOT NULL DEFAULT '[]',
        restored_from TEXT, restored_as TEXT, restore_status TEXT, UNIQUE (project_id, name))""",
    "CREATE INDEX branches_of_parent ON branches (parent_id)",
    "CREATE INDEX branches_expiring ON branches (expires_at) WHERE expires_at IS NOT NULL",
    # `state` is that before the operation `change_id`, until it is finished; then, `step` tells the state.
    """CREATE TABLE endpoints (
        id TEXT PRIMARY KEY, project_id TEXT NOT NULL REFERENCES projects (id),
        branch_id TEXT NOT NULL REFERENCES branches (id) ON DELETE CASCADE, options TEXT NOT NULL,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, state TEXT, change_id TEXT,
        started_at INTEGER, suspended_at INTEGER,
        last_used_at INTEGER NOT NULL, step INTEGER NOT NULL, next_step_at INTEGER)""",
    "CREATE INDEX endpoints_next ON endpoints (next_step_at)",
    "CREATE INDEX endpoints_of_project ON endpoints (project_id)",
    "CREATE INDEX endpoints_of_branch ON endpoints (branch_id)",
    """CREATE TABLE databases (
        id INTEGER PRIMARY KEY AUTOINCREMENT, branch_id TEXT NOT NULL REFERENCES branches (id) ON DELETE CASCADE,
        name TEXT NOT NULL, owner_name TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        UNIQUE (branch_id, name))""",
    # The API reveals passwords again, so they are stored as they are.
    """CREATE TABLE roles (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, branch_id TEXT NOT NULL REFERENCES branches (id) ON DELETE CASCADE,
        name TEXT NOT NULL, password TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        UNIQUE (branch_id, name))""",
    # With what was on the branch then, as JSON: its rows by table.
    """CREATE TABLE snapshots (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
        project_id TEXT NOT NULL REFERENCES projects (id), source_branch_id TEXT NOT NULL, name TEXT NOT NULL,
        lsn TEXT, timestamp INTEGER, created_at INTEGER NOT NULL, expires_at INTEGER, content TEXT NOT NULL)""",
    # With all that was deleted with the branch, as JSON: its rows by table.
    """CREATE TABLE deleted_branches (
        id TEXT PRIMARY KEY, project_id TEXT NOT NULL REFERENCES projects (id), deleted_at INTEGER NOT NULL,
        method TEXT NOT NULL, content TEXT NOT NULL)""",
    """CREATE TABLE members (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL, org_id TEXT NOT NULL, email TEXT NOT NULL, role TEXT NOT NULL,
        joined_at INTEGER NOT NULL)""",
    """CREATE TABLE permissions (
        id TEXT PRIMARY KEY, project_id TEXT NOT NULL REFERENCES projects (id), email TEXT NOT NULL,
        granted_at INTEGER NOT NULL)""",
    """CREATE TABLE operations (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
        project_id TEXT NOT NULL REFERENCES projects (id), branch_id TEXT NOT NULL, endpoint_id TEXT,
        action TEXT NOT NULL, created_at INTEGER NOT NULL, timeline TEXT NOT NULL, error TEXT,
        completed_at INTEGER, by_platform INTEGER NOT NULL)""",
    "CREATE INDEX operations_newest ON operations (project_id, created_at, seq)",
    """CREATE TABLE operation_plans (
        id INTEGER PRIMARY KEY AUTOINCREMENT, action TEXT, project_id TEXT, times INTEGER,
        timeline TEXT NOT NULL, error TEXT)""",
    # Statements that delete lingering resources when they are due.
    "CREATE TABLE deletions (id TEXT NOT NULL, due_at INTEGER NOT NULL, statement TEXT NOT NULL, parameters TEXT NOT NULL)",
    # Branches with what their state depends on: the operation that creates them, if any, and their deletion.
    """CREATE VIEW branch_states AS
        SELECT branches.*, operations.timeline AS creation_timeline, operations.created_at AS creation_started_at,
            EXISTS (SELECT 1 FROM deletions WHERE deletions.id = branches.id) AS deleting
        FROM branches LEFT JOIN operations ON operations.id = creation_id""",
    # The checksum of the seed file that the account was created from; null if there was none.
    "CREATE TABLE seed (sha256 TEXT)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

# What a branch is made of, and the column that says whose a row is. It is deleted with the branch.
BRANCH_TABLES = {"branches": "id", "roles": "branch_id", "databases": "branch_id", "endpoints": "branch_id"}


class Lingering(NamedTuple):
    """How a deletion lingers: for how many seconds, and whether its operations run for that time."""

    seconds: float
    operations_run: bool


@dataclass(frozen=True)
class Transaction:
    """A transaction on the account's database, at one point of sandbox time."""

    db: sqlite3.Connection
    clock: Clock
    now: int
    lingering: Lingering | None
    lock: str
    limits: Mapping[str, int | None]

    def unique_time(self) -> int:
        """Return a time for a change. It is later than that of every previous change, also after a restart."""
        time = self.clock.unique_time()
        self.db.execute("UPDATE clock SET latest = ?", (time,))
        return time

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        placeholders = ", ".join("?" * len(row))
        self.db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({placeholders})", list(row.values()))

    def delete(self, resource_id: str, statement: str, *parameters: str | int) -> None:
        """Execute a statement that deletes a resource: now, or later if the deletion lingers."""
        if self.lingering is None:
            self.db.execute(statement, parameters)
        else:
            due_at = self.now + int(self.lingering.seconds * SECOND)
            row = (resource_id, due_at, statement, json.dumps(parameters))
            self.db.execute("INSERT INTO deletions VALUES (?, ?, ?, ?)", row)

    def rows(self, table: str, column: str, value: str) -> list[dict[str, Any]]:
        return [dict(row) for row in self.db.execute(f"SELECT * FROM {table} WHERE {column} = ?", (value,))]

    def keep_deleted(self, branch_id: str, deleted_at: int, method: str) -> None:
        """Keep a branch that is being deleted, so that it can be recovered."""
        content = {table: self.rows(table, column, branch_id) for table, column in BRANCH_TABLES.items()}
        project_id = content["branches"][0]["project_id"]
        self.db.execute(
            "INSERT OR REPLACE INTO deleted_branches VALUES (?, ?, ?, ?, ?)",
            (branch_id, project_id, deleted_at, method, json.dumps(content)),
        )

    def complete_deletions(self) -> None:
        """Delete the lingering resources that are due, and the branches and snapshots that have expired."""
        self.db.execute("DELETE FROM snapshots WHERE expires_at <= ?", (self.now,))
        expired = self.db.execute(
            "SELECT id, expires_at FROM branches WHERE expires_at <= ?"
            " AND NOT EXISTS (SELECT 1 FROM branches AS children WHERE children.parent_id = branches.id)",
            (self.now,),
        ).fetchall()
        for row in expired:
            self.keep_deleted(row["id"], row["expires_at"], "ttl")
            self.db.execute("DELETE FROM branches WHERE id = ?", (row["id"],))
        for row in self.db.execute("SELECT * FROM deletions WHERE due_at <= ? ORDER BY due_at", (self.now,)).fetchall():
            self.db.execute(row["statement"], json.loads(row["parameters"]))
        self.db.execute("DELETE FROM deletions WHERE due_at <= ?", (self.now,))


def create_tables(tx: Transaction, seed_checksum: str | None) -> None:
    for statement in SCHEMA:
        tx.db.execute(statement)
    tx.db.execute("INSERT INTO seed VALUES (?)", (seed_checksum,))
    tx.db.execute("INSERT INTO clock VALUES (?, ?, 1.0, 0)", (tx.now, system_time()))


class Store:
    """One connection behind one lock, because a sandbox has few clients and short transactions."""

    def __init__(self, path: Path, speed: float | None, lock: str = "branch") -> None:
        """Open the database. `speed` applies to a new one at once, so that a stopped clock never runs during setup.

        `lock` says what an unfinished operation locks: its `branch`, or the `project`.
        """
        self.lingering: Lingering | None = None
        self.lock = lock
        self.limits: Mapping[str, int | None] = {}
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        # Survives the end of the process at any moment. What a loss of power costs, a sandbox need not keep.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA foreign_keys = ON")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA_VERSION):
            raise ValueError(
                f"{path} was created by another version of the sandbox. Remove the sandbox, then start it again."
            )
        self.is_new = version == 0
        self.clock = Clock(system_time(), 1.0 if speed is None else speed) if self.is_new else self._restore_clock()

    def _restore_clock(self) -> Clock:
        """Restore the clock. It advances while the sandbox is down, and never goes backwards even if the system clock does."""
        row = self._db.execute("SELECT * FROM clock").fetchone()
        elapsed = max(0, system_time() - row["system_origin"])
        return Clock(max(row["latest"], row["origin"] + int(elapsed * row["speed"])), row["speed"])

    def seed_checksum(self) -> str | None:
        """Return the checksum of the seed file that the account was created from; None if there was none."""
        with self.transaction() as tx:
            checksum: str | None = tx.db.execute("SELECT sha256 FROM seed").fetchone()["sha256"]
            return checksum

    def set_clock(self, speed: float | None, advance: float = 0) -> None:
        with self.transaction() as tx:
            speed = self.clock.speed if speed is None else speed
            origin = self.clock.set(speed, advance)
            tx.db.execute("UPDATE clock SET origin = ?, system_origin = ?, speed = ?", (origin, system_time(), speed))

    def with_lingering(self, lingering: Lingering) -> Store:
        """Return this store for a request whose deletions linger."""
        store = copy.copy(self)
        store.lingering = lingering
        return store

    def snapshot(self) -> Store:
        """Return a copy in memory, which later changes do not reach. It has the same clock."""
        store = copy.copy(self)
        store._lock = threading.Lock()
        store._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        store._db.row_factory = sqlite3.Row
        with self._lock:
            self._db.backup(store._db)
        return store

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commit when the block ends, roll back when it raises."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(self._db, self.clock, self.clock.now(), self.lingering, self.lock, self.limits)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._db.close()
