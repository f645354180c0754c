#!/bin/sh
# What `make test` and CI run. Measured data are demanded where their folder is
# (../shared, or BLKLAB_SHARED); what tests left out is listed at the end.
set -eu
cd "$(dirname "$0")/.."
if [ -d "${BLKLAB_SHARED:-../shared}" ]; then
    export BLKLAB_REQUIRE_SHARED="${BLKLAB_REQUIRE_SHARED:-1}"
fi
BLKLAB_SKIPS=$(mktemp)
export BLKLAB_SKIPS
trap 'rm -f "$BLKLAB_SKIPS"' EXIT

# Packages for the tests in Python are fetched meanwhile.
scripts/python.sh prepare &
scripts/test-setup.sh
scripts/lint.sh
status=0
cargo test --workspace --no-fail-fast || status=$?
wait
scripts/python.sh test || status=$?
if [ -s "$BLKLAB_SKIPS" ]; then
    echo "test: $(wc -l <"$BLKLAB_SKIPS") times a test left something out:" >&2
    sort -u "$BLKLAB_SKIPS" >&2
else
    echo "test: nothing was left out" >&2
fi
exit "$status"
