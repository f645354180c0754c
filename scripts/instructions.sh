#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Instructions that `blklab run` takes per I/O, and `blklab trace stats` per
# event, counted by valgrind: unlike times they are the same on a busy machine.
#
# Usage: scripts/instructions.sh [COMMAND [EXAMPLE]], by default target/release/blklab and
# target/release/examples/metrics_alone (cargo build --release -p blklab --example
# metrics_alone), which makes the figures of jobs alone; where it is not, it is left out.
# The difference between a long and a short run leaves out what a run costs once.
# On one processor events are analysed where they arise: valgrind counts the copy to
# another thread byte by byte.
set -eu
blklab=${1:-target/release/blklab}
alone=${2:-target/release/examples/metrics_alone}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

count() {
    taskset -c 0 valgrind --tool=callgrind --callgrind-out-file="$folder/profile" "$@" 2>&1 >"$folder/said" |
        sed -n 's/.*Collected : //p'
}

job() {
    printf '[global]\nrw=randread\nbs=4k\nioengine=libaio\ndirect=1\niodepth=32\n' >"$1"
    printf 'filename=/dev/sda\nsize=1g\nnumber_ios=%s\n[a]\n[b]\n' "$2" >>"$1"
}

job "$folder/short.fio" 5000
job "$folder/long.fio" 20000
for row in '2.6.28 noop' '2.6.28 cfq' '6.1 none' '6.1 bfq'; do
    # shellcheck disable=SC2086 # two words
    set -- $row
    short=$(count "$blklab" run "$folder/short.fio" --kernel "$1" --sched "$2" --device serial --jobs 1)
    long=$(count "$blklab" run "$folder/long.fio" --kernel "$1" --sched "$2" --device serial --jobs 1)
    echo "run, $2 of $1: $(((long - short) / 30000)) instructions per I/O"
    [ -x "$alone" ] || continue
    short=$(count "$alone" "$folder/short.fio" "$1" "$2" serial)
    long=$(count "$alone" "$folder/long.fio" "$1" "$2" serial)
    echo "figures of jobs alone: $(((long - short) / 30000))"
done
for length in short long; do
    "$blklab" run "$folder/$length.fio" --kernel 2.6.28 --sched deadline --device serial \
        --trace "$folder/$length.blktrace.0" >"$folder/said"
done
short=$(count "$blklab" trace stats "$folder/short.blktrace.0")
long=$(count "$blklab" trace stats "$folder/long.blktrace.0")
bytes=$(($(wc -c <"$folder/long.blktrace.0") - $(wc -c <"$folder/short.blktrace.0")))
echo "trace stats: $(((long - short) * 48 / bytes)) instructions per event"
