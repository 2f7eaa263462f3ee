# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds API keys, projects and operations for reports."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


def stamp(moment):
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


def ago(**age):
    return stamp(NOW - timedelta(**age))


def key(number, name, last_used_at=None, **fields):
    return {
        "id": number,
        "name": name,
        "created_at": ago(days=100 * number),
        "last_used_at": last_used_at,
        "last_used_from_addr": "192.0.2.1" if last_used_at else "",
        **fields,
    }


def project(project_id, name=..., **fields):
    return {
        "id": project_id,
        "name": project_id if name is ... else name,
        "platform_id": "aws",
        "region_id": "aws-eu-central-1",
        "provisioner": "k8s-pod",
        "pg_version": 17,
        "locked": False,
        "cpu_used_sec": 10,
        "proxy_host": "eu.example",
        "branch_logical_size_limit": 204800,
        "created_at": ago(days=50),
        "updated_at": ago(days=1),
        **fields,
    }


def operation(number, status="finished", seconds=1.0, action="start_compute", project_id="p1", age=None, **fields):
    created_at = NOW - (timedelta(hours=number) if age is None else age)
    return {
        "id": f"op-{number}",
        "project_id": project_id,
        "branch_id": "br-1",
        "endpoint_id": "ep-1",
        "action": action,
        "status": status,
        "failures_count": 0,
        "created_at": stamp(created_at),
        "updated_at": stamp(created_at + timedelta(seconds=seconds)),
        **fields,
    }


def account(api_keys=(), projects=(), operations=(), **fields):
    return {"api_keys": list(api_keys), "projects": list(projects), "operations": list(operations), **fields}
