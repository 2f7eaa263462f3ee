# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local control API that implements the complete contract of the service, to try out and test playbooks."""
