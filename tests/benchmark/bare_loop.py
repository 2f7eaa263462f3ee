# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches all pages of a list with a plain requests loop: ``bare_loop.py URL FIELD NAME=VALUE...``, or a list without pages if FIELD is empty.

Reads the API key from BENCHMARK_API_KEY and prints all items as JSON.
"""

import json
import os
import sys

import requests


def main() -> None:
    url, field, *parameters = sys.argv[1:]
    query = dict(parameter.split("=", 1) for parameter in parameters)
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {os.environ['BENCHMARK_API_KEY']}"
    items = []
    while True:
        response = session.get(url, params=query, timeout=30)
        response.raise_for_status()
        page = response.json()
        if not field:
            items = page
            break
        items += page[field]
        if not page[field]:
            break
        query["cursor"] = page["pagination"]["cursor"]
    print(json.dumps(items))


if __name__ == "__main__":
    main()
