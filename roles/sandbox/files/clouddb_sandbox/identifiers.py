# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random identifiers in the format of the public service."""

from __future__ import annotations

import random
import uuid

ADJECTIVES = """
    autumn bold calm crimson dark frosty gentle late little misty old patient quiet restless silent small
    snowy summer weathered wild wispy
"""
NOUNS = """
    bird breeze brook cloud dawn dew field fire flower forest grass hill lake leaf meadow moon pond rain
    river sea sky snow star tree wind
"""

SYSTEM_RANDOM: random.Random = random.SystemRandom()


def project_id(rng: random.Random = SYSTEM_RANDOM) -> str:
    return f"{rng.choice(ADJECTIVES.split())}-{rng.choice(NOUNS.split())}-{rng.randrange(10**7, 10**8)}"


def branch_id(rng: random.Random = SYSTEM_RANDOM) -> str:
    return f"br-{project_id(rng)}"


def snapshot_id(rng: random.Random = SYSTEM_RANDOM) -> str:
    return f"snap-{project_id(rng)}"


def endpoint_id(rng: random.Random = SYSTEM_RANDOM) -> str:
    return f"ep-{project_id(rng)}"


def operation_id(rng: random.Random = SYSTEM_RANDOM) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))
