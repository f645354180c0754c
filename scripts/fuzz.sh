#!/bin/sh
# Fuzzes every target for the given number of seconds (60 by default), or the
# targets named after it: scripts/fuzz.sh 600 trace compact
# With BLKLAB_FUZZ_CANARY=1 each has a planted fault, and must find it.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
command -v cargo-fuzz >/dev/null 2>&1 || cargo install --locked cargo-fuzz
# cargo-fuzz asks for flags of a nightly compiler; the stable one has them too.
export RUSTC_BOOTSTRAP=1

fuzz() {
    cargo fuzz run --sanitizer none "$1" -- -max_total_time="$seconds" -rss_limit_mb=2048
}

found_it() {
    log=$(mktemp)
    ! fuzz "$1" >"$log" 2>&1 && grep -q "the planted fault of $1" "$log"
    status=$?
    [ $status -eq 0 ] || tail -20 "$log" >&2
    rm -f "$log"
    return $status
}

targets=$*
for target in ${targets:-$(basename -s .rs fuzz/fuzz_targets/*.rs)}; do
    echo "fuzz: $target for $seconds s"
    if [ "${BLKLAB_FUZZ_CANARY:-0}" != 1 ]; then
        fuzz "$target"
    elif found_it "$target"; then
        echo "fuzz: $target finds the planted fault"
    else
        echo "fuzz: $target misses the planted fault" >&2
        exit 1
    fi
done
