# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings as SARIF 2.1.0, the format of static analysis results that security dashboards read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ...module_utils._untrusted import MAX_MESSAGE_LENGTH, displayable
from ...module_utils._version import COLLECTION_VERSION
from .kinds import KINDS, Finding, remaining, title_of

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
NAME = "clouddb.control.api_key_policy"
HOMEPAGE = "https://github.com/clouddb/ansible-control"


def sarif_text(result: Mapping[str, Any]) -> str:
    """The JSON of the SARIF log of a result of the module api_key_policy, with the findings on keys that were not revoked."""
    driver = {
        "name": NAME,
        "version": COLLECTION_VERSION,
        "informationUri": HOMEPAGE,
        "rules": [
            {
                "id": kind,
                "name": texts.title,
                "shortDescription": _message(texts.description),
                "defaultConfiguration": {"level": texts.level},
            }
            for kind, texts in KINDS.items()
        ],
    }
    results = [_result(finding) for finding in remaining(result["findings"])]
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=2)


def _result(finding: Finding) -> dict[str, Any]:
    kind, key_id = finding["kind"], finding["key_id"]
    identity = finding["name"] if key_id is None else str(key_id)
    # A name may be a number, as ids are.
    location = f"api_keys/name/{displayable(identity)}" if key_id is None else f"api_keys/{identity}"
    # The same in every run, whatever the message says about the outcome.
    fingerprint = hashlib.sha256(f"{kind}/{identity}".encode(errors="surrogatepass")).hexdigest()
    return {
        "ruleId": kind,
        "ruleIndex": list(KINDS).index(kind),
        "level": KINDS[kind].level,
        "message": _message(displayable(finding["message"], MAX_MESSAGE_LENGTH)),
        "locations": [
            {
                # GitHub refuses a result without a file and a line. No repository has this file.
                "physicalLocation": {"artifactLocation": {"uri": "api_keys"}, "region": {"startLine": 1}},
                "logicalLocations": [{"name": title_of(finding), "fullyQualifiedName": location, "kind": "resource"}],
            }
        ],
        # GitHub uses the second one only.
        "partialFingerprints": {"apiKey/v1": fingerprint, "primaryLocationLineHash": fingerprint},
    }


def _message(text: str) -> dict[str, str]:
    """A message that shows the text as it is, without placeholders such as C({0}) and links such as C([text](url)).

    SARIF requires the escapes of brackets and backslashes in the text of a link only. Elsewhere they are allowed, and
    without them, parts of the text could be a link.
    """
    return {"text": re.sub(r"[\\\[\]]", r"\\\g<0>", text).replace("{", "{{").replace("}", "}}")}
