#!/bin/sh
# Fuzzes every target for the given number of seconds (60 by default).
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
command -v cargo-fuzz >/dev/null 2>&1 || cargo install --locked cargo-fuzz
# cargo-fuzz asks for flags of a nightly compiler; the stable one has them too.
export RUSTC_BOOTSTRAP=1
for target in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    echo "fuzz: $name for $seconds s"
    cargo fuzz run --sanitizer none "$name" -- -max_total_time="$seconds" -rss_limit_mb=2048
done
