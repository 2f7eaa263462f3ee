# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the outcome and the name of each test case of a JUnit file."""

import json
import sys
from xml.etree import ElementTree

cases = ElementTree.parse(sys.argv[1]).iter("testcase")
print(json.dumps([f"{case[0].tag if len(case) else 'passed'}: {case.get('name')}" for case in cases]))
