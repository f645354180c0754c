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
trap 'rm -f "$BLKLAB_SKIPS" "${python:-}"' EXIT

# Packages for the tests in Python are fetched meanwhile.
scripts/python.sh prepare &
scripts/test-setup.sh
scripts/lint.sh light
# Clippy looks at what it compiles for the tests, as `cargo clippy` has it do: a pass of its own
# takes as long as half of the compilation. The documentation and benchmarks are left to
# `make check`.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver
export CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
cargo test --workspace --no-run
wait
# Many a test has one core busy: those in Python take the other meanwhile.
python=$(mktemp)
scripts/python.sh test >"$python" 2>&1 &
status=0
cargo test --workspace --no-fail-fast || status=$?
wait $! || status=$?
cat "$python"
if [ -s "$BLKLAB_SKIPS" ]; then
    echo "test: $(wc -l <"$BLKLAB_SKIPS") times a test left something out:" >&2
    sort -u "$BLKLAB_SKIPS" >&2
else
    echo "test: nothing was left out" >&2
fi
exit "$status"
