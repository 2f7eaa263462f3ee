# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the table of resources have only what the public service's document has."""

from __future__ import annotations

import pytest
from contract import Contract

from ansible_collections.clouddb.control.plugins.module_utils._resources import kinds
from ansible_collections.clouddb.control.tests.unit.support.openapi_rows import ROWS, Described, problems


@pytest.mark.smoke
@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_what_the_document_describes(contract: Contract, name: str) -> None:
    assert problems(getattr(kinds, name), Described(contract.document.content)) == []
