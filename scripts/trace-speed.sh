#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# How fast `blklab` reads traces, beside blkparse and btt on the same trace, and how much
# memory it takes for a long one, which is made while it is read.
#
# Usage: scripts/trace-speed.sh [FOLDER [LONG_BYTES]], by default target/release and 5 GB:
#   cargo build --release --bin blklab && cargo build --release -p blklab-formats --examples
# Times are those of the processor, user and system: other programs make less difference.
set -eu
release=${1:-target/release}
long=${2:-5000000000}
blklab=$release/blklab
make=$release/examples/long_trace
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Prints one row: what it is, seconds, million events per second, largest memory.
row() {
    name=$1 events=$2
    shift 2
    /usr/bin/time -f '%U %S %M' -o "$folder/time" "$@" >"$folder/said" 2>"$folder/errors"
    awk -v name="$name" -v events="$events" '{
        s = $1 + $2
        printf "%-24s %7.2f s %7.2f million/s %7.1f MB\n", name, s, events / s / 1e6, $3 / 1e3
    }' "$folder/time"
}

bytes=200000000
events=$((bytes / 48))
"$make" $bytes >"$folder/t.blktrace.0"
echo "$events events"
row 'trace stats' "$events" "$blklab" trace stats "$folder/t.blktrace.0"
row 'why' "$events" "$blklab" why "$folder/t.blktrace.0"
row 'trace print -q' "$events" "$blklab" trace print -q "$folder/t.blktrace.0"
cp "$folder/said" "$folder/t.txt"
row 'trace stats, text' "$events" "$blklab" trace stats "$folder/t.txt"
if command -v blkparse >/dev/null && command -v btt >/dev/null; then
    row 'blkparse, text' "$events" blkparse -q -D "$folder" -i t
    row 'blkparse, for btt' "$events" blkparse -q -O -D "$folder" -i t -d "$folder/t.bin"
    row 'btt' "$events" btt -i "$folder/t.bin" -o "$folder/btt"
else
    echo 'blkparse and btt are not installed'
fi
echo "$((long / 48)) events through a pipe"
for command in 'trace stats' 'trace info' 'why'; do
    "$make" "$long" |
        row "$command -" $((long / 48)) sh -c "exec $blklab $command -"
done
