# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts of thousands of projects: a request about one of them does not read those of others."""

from __future__ import annotations

PROJECT = "wispy-lake-12345678"
LARGE_TABLES = ("projects", "branches", "roles", "databases", "endpoints", "operations")


def test_a_request_about_one_project_reads_its_rows_only(service):
    """By the query plans of SQLite: large accounts are as quick as small ones."""
    store, statements = service.application.app.state.sandbox.store, []
    with store.transaction() as tx:
        tx.db.set_trace_callback(statements.append)
    branch = service.create_finished_branch(branch={"expires_at": service.later(days=1)})
    service.finished("POST", f"{branch}/roles", json={"role": {"name": "app"}})
    service.ok("POST", f"{branch}/restore", json={"source_branch_id": service.default_branch()})
    service.advance(7200)
    for path in ("", "/branches", "/endpoints", "/operations"):
        service.ok("GET", f"projects/{PROJECT}{path}")
    service.finished("DELETE", branch)
    service.ok("DELETE", f"projects/{PROJECT}")
    with store.transaction() as tx:
        tx.db.set_trace_callback(None)
        explained = [tx.db.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall() for statement in set(statements)]
    plans = {row["detail"] for plan in explained for row in plan}
    assert [plan for plan in plans if plan.split()[:2] in [["SCAN", table] for table in LARGE_TABLES]] == []


def statuses(service, project):
    return [each["status"] for each in service.operations(project) if each["action"] == "suspend_compute"]


def test_an_operation_plan_applies_to_the_next_operation_of_any_project(serve):
    service = serve({"projects": [{"id": "first"}, {"id": "second"}]})
    [compute] = service.ok("GET", "projects/first/endpoints")["endpoints"]
    body = {"endpoint": {"suspend_timeout_seconds": 60}}
    service.ok("PATCH", f"projects/first/endpoints/{compute['id']}", json=body)
    service.advance(310)
    service.plan([[0, "failed"]], action="suspend_compute")
    assert statuses(service, "second") == ["finished"]
    service.advance(6900)  # "first" is started again, and is suspended after a minute, "second" after five
    service.advance(300)
    assert statuses(service, "second") == ["finished", "finished"]
    assert statuses(service, "first") == ["failed", "finished"]
