#!/usr/bin/env bash
# The quickstart works in a folder whose ansible.cfg only says where the collection is, shows the progress of its waits and no
# task of the role sandbox, and leaves no files behind. If the sandbox does not start, it reports the reason.
# If it is interrupted, no process runs on.
set -eux -o pipefail

TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
output=$OUTPUT_DIR/quickstart
soak=$(grep -s '^soak: true$' ../../integration_config.yml || true)

mkdir "$TMPDIR/a folder"
cd "$TMPDIR/a folder"
printf '[defaults]\ncollections_path = ../collections\n' > ansible.cfg
ln -s "${ANSIBLE_COLLECTIONS_PATH%%:*}" ../collections
unset ANSIBLE_CONFIG ANSIBLE_COLLECTIONS_PATH

# The virtual environment of the sandbox is made by a Python whose path contains a space.
mkdir "$TMPDIR/a python"
ln -s "$(python -c 'import sys; print(sys.executable)')" "$TMPDIR/a python/python"
ansible-playbook clouddb.control.quickstart -e "{sandbox_python: $TMPDIR/a python/python}" 2>&1 | tee "$output"

grep -q "clouddb: wispy-lake-12345678 start_compute .* running → finished" "$output"
grep -q "clouddb: wispy-lake-12345678 apply_config .* running → finished" "$output"
grep -q "Task 8 received status 401" "$output"
test "$(grep -c -e "clouddb.control.sandbox :" -e "^included:" -e "^skipping:" "$output")" = 0
# After the last task comes only the recap.
test "$(grep "^TASK" "$output" | tail -n 1 | cut -d "]" -f 1)" = "TASK [Next, do this"

# Ctrl-C interrupts it while the sandbox is running, which then ends.
python - <<'END'
import os, shutil, signal, subprocess, time
from pathlib import Path

temporary = Path(os.environ["TMPDIR"])
quickstart = subprocess.Popen(["ansible-playbook", "clouddb.control.quickstart"], start_new_session=True)
deadline = time.monotonic() + 300
while not (found := [*temporary.glob("clouddb-quickstart-*/sandbox.env")]):
    assert quickstart.poll() is None and time.monotonic() < deadline
    time.sleep(0.1)
folder = found[0].parent
path = Path("/proc", (folder / "sandbox/sandbox.sqlite.lock").read_text(), "cmdline")
assert str(folder) in path.read_text()
os.killpg(quickstart.pid, signal.SIGINT)
quickstart.wait(60)
deadline = time.monotonic() + 10
# A process that has ended has no command line.
while path.exists() and str(folder) in path.read_text():
    assert time.monotonic() < deadline
    time.sleep(0.1)
shutil.rmtree(folder)
END

if [ "$soak" ]; then
    # No host has this address: it is for documentation.
    ansible-playbook clouddb.control.quickstart --extra-vars sandbox_host=192.0.2.1 | tee "$output" && exit 1
    grep -q '"msg": "The sandbox did not start[.] Fix this problem, then run the quickstart again: 192[.]0[.]2[.]1 is not an address' "$output"
fi

rm -r ansible.cfg ../collections "$TMPDIR/a python"
rmdir "$TMPDIR/a folder"
test -z "$(ls -A "$TMPDIR")"
