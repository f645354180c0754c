#!/bin/sh
# Fuzzes every target for the given number of seconds (60 by default), or the
# targets named after it: scripts/fuzz.sh 600 trace compact
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
command -v cargo-fuzz >/dev/null 2>&1 || cargo install --locked cargo-fuzz
# cargo-fuzz asks for flags of a nightly compiler; the stable one has them too.
export RUSTC_BOOTSTRAP=1

# What a target starts from: samples that the project carries, at most 64 KiB of
# each.
seeds() {
    case $1 in
    fio_job) ls testdata/*/*.fio examples/*.fio crates/*/studies/*/*.fio ;;
    iolog) ls testdata/fio/replay/*.iolog ;;
    experiment) ls examples/*.toml crates/*/studies/*/*.toml testdata/legacy/cases/* ;;
    # The first line may force a format; without one the trace is recognised.
    trace) find testdata -mindepth 2 -maxdepth 2 -type f -size -64k ;;
    # Any bytes are an experiment.
    run) ls testdata/blkparse/*.blktrace.* ;;
    esac
    find "fuzz/regressions/$1" -type f 2>/dev/null || true
}

# A disk in one file: its files and a trace, divided by NUL.
disk() {
    for end in diskspecs model seek parv trace; do
        head -c 32768 "$1.$end"
        printf '\0'
    done
}

plant() {
    corpus=fuzz/corpus/$1
    mkdir -p "$corpus"
    seeds "$1" | while read -r file; do
        head -c 65536 "$file" >"$corpus/$(echo "$file" | tr / _)"
    done
    case $1 in
    diskspecs)
        for name in atlas10k cheetah4LP ibm18es; do
            disk "testdata/device/disksim/$name" >"$corpus/$name"
        done
        ;;
    trace)
        for packed in testdata/tracedat/*.dat.zst; do
            zstd -dqf "$packed" -o "$corpus/$(basename "$packed" .zst)"
        done
        ;;
    ctf)
        folder=testdata/ctf/le-large/kernel
        for file in "$folder"/channel0_*; do
            { cat "$folder/metadata" && printf '\0' && cat "$file"; } >"$corpus/$(basename "$file")"
            cp "$file" "$corpus/alone-$(basename "$file")"
        done
        ;;
    compact)
        cargo run --quiet --release --bin blklab -- \
            trace convert testdata/blkparse/missed-merge.txt "$corpus/missed-merge.blk"
        ;;
    esac
}

targets=$*
for target in ${targets:-$(basename -s .rs fuzz/fuzz_targets/*.rs)}; do
    echo "fuzz: $target for $seconds s"
    plant "$target"
    cargo fuzz run --sanitizer none "$target" -- -max_total_time="$seconds" -rss_limit_mb=2048
done
