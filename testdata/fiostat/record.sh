#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Records the outputs of the installed fio for every cases/*.fio.
#
#   ./record.sh            all cases
#   ./record.sh NAME...    some
#
# A case is a job file; a first line `# args: ...` adds command-line options.
# The files a job uses are made in a temporary directory. All formats of one run
# are printed together, so that they describe the same numbers.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TZ=UTC LC_ALL=C
fio --version > "$here/VERSION"
if [ $# -eq 0 ]; then
    set -- $(cd "$here/cases" && ls ./*.fio | sed 's|^\./||; s|\.fio$||')
fi
for name in "$@"; do
    job=$here/cases/$name.fio
    args=$(sed -n '1s/^# args: //p' "$job")
    rm -rf ./* "$here/recorded/$name"
    mkdir -p "$here/recorded/$name"
    # Lay out the data files first: the recorded run should not print that.
    fio --output=/dev/null "$job" || true
    rm -f ./*.log
    # shellcheck disable=SC2086
    fio --output-format=normal,json+,terse $args --output=out.txt "$job" 2> err.txt || true
    cp out.txt "$here/recorded/$name/"
    for log in ./*.log; do
        [ -e "$log" ] && cp "$log" "$here/recorded/$name/"
    done
    echo "$name: $(wc -c < out.txt) bytes"
done
