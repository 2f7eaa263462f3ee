# Copyright (c) clouddb.control contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file in place of a vault, with a previous version: ``vault.py store|restore FILE KEY_ID``; store reads the secret."""

from __future__ import annotations

import sys
from pathlib import Path


def main(action: str, path: str, key_id: str) -> None:
    """Store a key, or restore the one before it if the vault still holds this key."""
    vault = Path(path)
    previous = vault.with_suffix(".previous")
    held = vault.read_text().split()[0] if vault.exists() else ""
    if action == "store":
        if held and held != key_id:
            previous.write_text(vault.read_text())
        vault.write_text(f"{key_id} {sys.stdin.read().strip()}")
    elif held == key_id:
        if previous.exists():
            previous.replace(vault)
        else:
            vault.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
