#!/usr/bin/env bash
# The quickstart succeeds and leaves no files behind.
set -eux -o pipefail

TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

ansible-playbook clouddb.control.quickstart | tee "$TMPDIR/output"

grep -q "the service responds with status 401" "$TMPDIR/output"
rm "$TMPDIR/output"
test -z "$(ls -A "$TMPDIR")"
