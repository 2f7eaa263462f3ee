#!/usr/bin/env bash
# The quickstart works, and leaves nothing running or lying about.
set -eux -o pipefail

TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

ansible-playbook clouddb.control.quickstart | tee "$TMPDIR/output"

grep -q "the service answers 401 to it" "$TMPDIR/output"
rm "$TMPDIR/output"
test -z "$(ls -A "$TMPDIR")"
