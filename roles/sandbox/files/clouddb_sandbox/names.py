# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Identifiers in the style of the service."""

from __future__ import annotations

import random
import secrets
import string
import uuid

ADJECTIVES = (
    "autumn",
    "bold",
    "calm",
    "crimson",
    "dark",
    "frosty",
    "gentle",
    "late",
    "little",
    "misty",
    "old",
    "patient",
    "quiet",
    "restless",
    "silent",
    "small",
    "snowy",
    "summer",
    "weathered",
    "wild",
    "wispy",
)
NOUNS = (
    "bird",
    "breeze",
    "brook",
    "cloud",
    "dawn",
    "dew",
    "field",
    "fire",
    "flower",
    "forest",
    "grass",
    "hill",
    "lake",
    "leaf",
    "meadow",
    "moon",
    "pond",
    "rain",
    "river",
    "sea",
    "sky",
    "snow",
    "star",
    "tree",
    "wind",
)

SURPRISE: random.Random = random.SystemRandom()


def project_id(source: random.Random = SURPRISE) -> str:
    return f"{source.choice(ADJECTIVES)}-{source.choice(NOUNS)}-{source.randrange(10**7, 10**8)}"


def branch_id(source: random.Random = SURPRISE) -> str:
    return f"br-{source.choice(ADJECTIVES)}-{source.choice(NOUNS)}-{source.randrange(10**7, 10**8)}"


def endpoint_id(source: random.Random = SURPRISE) -> str:
    return f"ep-{source.choice(ADJECTIVES)}-{source.choice(NOUNS)}-{source.randrange(10**7, 10**8)}"


def operation_id(source: random.Random = SURPRISE) -> str:
    return str(uuid.UUID(int=source.getrandbits(128), version=4))


def secret() -> str:
    """A key's secret: 64 random letters and digits."""
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _position in range(64))
