#!/usr/bin/env bash
# The playbook sandbox starts, restarts and removes a sandbox in the current folder, and writes its address and key for the shell.
set -eux -o pipefail

soak=$(grep -s '^soak: true$' ../../integration_config.yml || true)
FOLDER=$(mktemp -d)
inventory=$PWD/hosts.ini
cd "$FOLDER"
playbook=(ansible-playbook -i "$inventory" clouddb.control.sandbox -e "sandbox_virtualenv=$(python -c 'import sys; print(sys.prefix)')")

remove() {
    "${playbook[@]}" -e sandbox_state=absent
}
trap 'remove; rm -rf "$FOLDER"' EXIT

projects() {
    # The service itself, without the collection; set -x would show the key.
    (set +x; . ./sandbox.env; python - <<'END'
import json, os, urllib.request
headers = {"Authorization": "Bearer " + os.environ["CLOUDDB_API_KEY"]}
request = urllib.request.Request(os.environ["CLOUDDB_BASE_URL"] + "/projects", headers=headers)
with urllib.request.urlopen(request, timeout=30) as response:
    print(*sorted(project["id"] for project in json.load(response)["projects"]))
END
    )
}

"${playbook[@]}" --check
test -z "$(ls -A)"

# The folder is that of the process, even if PWD is that of another one.
PWD=/nowhere "${playbook[@]}"
test "$(ls -A)" = "$(printf 'sandbox\nsandbox.env')"
test -n "$(find sandbox.env -perm 600)"
test "$(projects)" = "calm-hill-87654321 wispy-lake-12345678"

cp sandbox.env first.env
"${playbook[@]}" | tee output
grep -q "changed=0 " output
cmp sandbox.env first.env
rm output

"${playbook[@]}" --check | tee output
grep -q "changed=0 " output
rm output

rm first.env

# A file that the playbook has not written is neither overwritten nor removed.
mv sandbox.env ours.env
echo "export CLOUDDB_BASE_URL=https://control.example.com/api/v2" > sandbox.env
cp sandbox.env unrelated.env
if "${playbook[@]}" -e sandbox_state=absent > output; then exit 1; fi
grep -q "sandbox.env was not written by this playbook. Move it elsewhere" output
cmp sandbox.env unrelated.env
test -e sandbox/sandbox.sqlite
rm output unrelated.env
mv ours.env sandbox.env

remove
test -z "$(ls -A)"

if [ "$soak" ]; then
    # A seed of the user is not mistaken for that of the guides.
    echo "projects: []" > seed.yml
    if "${playbook[@]}" -e sandbox_seed_file=seed.yml > output; then exit 1; fi
    grep -q "sandbox_seed_file: 'seed.yml' can't be read" output
    rm seed.yml output

    # A path may have a variable and end with a slash, and another seed may be set, also as text.
    PARENT=$FOLDER "${playbook[@]}" -e "sandbox_dir=\$PARENT/sandbox/" -e 'sandbox_seed={"projects":[{"id":"calm-sea-11111111","pg_version":null}]}'
    test "$(ls -A)" = "$(printf 'sandbox\nsandbox.env')"
    test "$(projects)" = "calm-sea-11111111"

    remove
    test -z "$(ls -A)"
    # The trap removes what is removed already, without an error.
else
    trap 'rm -rf "$FOLDER"' EXIT
fi
