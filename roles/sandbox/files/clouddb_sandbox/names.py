# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Identifiers in the style of the service."""

from __future__ import annotations

import random
import secrets
import string
import uuid

ADJECTIVES = ("aged autumn billowing bitter bold calm cold cool crimson damp dark dawn falling floral fragrant frosty "
              "gentle green hidden holy icy late lingering little lively long misty morning muddy nameless old patient "
              "polished purple quiet raspy red restless rough round shiny silent small snowy solitary sparkling spring "
              "still summer sweet twilight wandering weathered white wild winter wispy young").split()
NOUNS = ("bird boat breeze brook bush butterfly cake cell cherry cloud credit darkness dawn dew dream dust feather "
         "field fire firefly flower fog forest frog glade glitter grass hall hat haze heart hill king lab lake leaf "
         "limit math meadow mode moon morning mountain mouse mud night paper pine poetry pond queen rain recipe "
         "resonance rice river salad scene sea shadow shape silence sky smoke snow sound star sun sunset surf term "
         "thunder tooth tree truth union unit violet voice water wave wildflower wind wood").split()

SURPRISE: random.Random = random.SystemRandom()


def project_id(source: random.Random = SURPRISE) -> str:
    return f"{source.choice(ADJECTIVES)}-{source.choice(NOUNS)}-{source.randrange(10**7, 10**8)}"


def branch_id(source: random.Random = SURPRISE) -> str:
    return f"br-{source.choice(ADJECTIVES)}-{source.choice(NOUNS)}-{source.randrange(10**5, 10**6)}"


def endpoint_id(source: random.Random = SURPRISE) -> str:
    return f"ep-{source.choice(ADJECTIVES)}-{source.choice(NOUNS)}-{source.randrange(10**5, 10**6)}"


def operation_id(source: random.Random = SURPRISE) -> str:
    return str(uuid.UUID(int=source.getrandbits(128), version=4))


def secret() -> str:
    """A key's secret: 64 random letters and digits."""
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _position in range(64))
