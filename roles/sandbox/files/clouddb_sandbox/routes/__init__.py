# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The endpoints: one module per resource, and one for the sandbox's control endpoints."""
