# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts operations in one project and prints them as JSON: ``start_operations.py BASE_URL PROJECT_ID NUMBER SECONDS``.

Each operation finishes after SECONDS. Reads the API key from BENCHMARK_API_KEY.
"""

import json
import os
import sys

import requests


def main() -> None:
    base_url, project_id, number, seconds = sys.argv[1:]
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {os.environ['BENCHMARK_API_KEY']}"

    def post(url: str, body: object) -> dict[str, list[object]]:
        response = session.post(url, json=body, timeout=30)
        response.raise_for_status()
        content: dict[str, list[object]] = response.json()
        return content

    plan = {"project_id": project_id, "times": int(number), "timeline": [[0, "running"], [float(seconds), "finished"]]}
    post(base_url.replace("/api/v2", "/_sandbox/operation_plans"), plan)
    # A branch without a compute starts a single operation.
    branches = [post(f"{base_url}/projects/{project_id}/branches", {"endpoints": []}) for _number in range(int(number))]
    print(json.dumps([operation for branch in branches for operation in branch["operations"]]))


if __name__ == "__main__":
    main()
