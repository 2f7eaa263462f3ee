# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate authority for the tests, and the certificates that it issues."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta, timezone
from pathlib import Path

import trustme

DAY = timedelta(days=1)
# How errors describe a certificate of another host: the words of OpenSSL, and those of urllib3 1.
OTHER_HOST = "(Hostname|IP address) mismatch|hostname '.*' doesn't match"


class Authority:
    """C(bundle) is the path of its CA bundle."""

    def __init__(self, folder: Path):
        self._authority = trustme.CA()
        self.bundle = str(folder / "authority.pem")
        self._authority.cert_pem.write_to_path(self.bundle)

    def server(self, name: str = "127.0.0.1", valid: tuple[timedelta, timedelta] = (-DAY, DAY)) -> ssl.SSLContext:
        """The TLS settings of a server of this name, with a certificate that is C(valid) from and until these times from now."""
        now = datetime.now(timezone.utc)
        certificate = self._authority.issue_cert(name, not_before=now + valid[0], not_after=now + valid[1])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        return context
