#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds `blklab` with profile-guided optimisation: builds it with counters, runs
# what its users run, and builds it again with what was counted.
#
# Usage: scripts/pgo.sh, which leaves target/pgo/ARCHITECTURE/release/blklab.
# It needs rustup's component llvm-tools (`rustup component add llvm-tools`), or
# in LLVM_PROFDATA an llvm-profdata of the LLVM that rustc is built with.
set -eu
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
profdata=${LLVM_PROFDATA:-$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata}
"$profdata" --help >/dev/null 2>&1 || {
    echo "pgo: no llvm-profdata at $profdata: rustup component add llvm-tools" >&2
    exit 2
}
target=${CARGO_TARGET_DIR:-target}/pgo
counted=$target/counted
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

# With --target, build scripts and macros are compiled without the flags.
build() {
    RUSTFLAGS=$1 cargo build --release --locked -p blklab-cli --target "$host" --target-dir "$2"
}

# What people do: runs on both block layers and with filesystems, reports of
# them, and traces read, examined and converted.
load() {
    blklab=$1
    "$blklab" run examples/ssh-beside-dd.fio --kernel 2.6.28 --sched noop,anticipatory,deadline,cfq --out "$runs/legacy"
    "$blklab" run examples/ssh-beside-dd.fio --kernel 6.12 --sched none,mq-deadline,kyber,bfq --out "$runs/disk"
    "$blklab" run examples/random-read.fio --kernel 6.1 --sched none,mq-deadline,kyber,bfq \
        --device nvme-consumer --out "$runs/flash"
    "$blklab" run examples/fdatasync.fio --kernel 6.12 --fs ext4
    "$blklab" reproduce ltt-2009-ssh --seeds 2 || test $? = 1
    "$blklab" report "$runs/legacy" -o "$runs/report.html"
    "$blklab" run examples/ssh-beside-dd.fio --kernel 6.12 --sched bfq --trace "$runs/bfq"
    for trace in testdata/blkparse/sync-write-stall-2.6.26.txt "$runs/bfq"; do
        "$blklab" why "$trace" || test $? = 1
        "$blklab" trace stats "$trace"
        "$blklab" trace print "$trace"
    done
}

rm -rf "$counted"
build "-Cprofile-generate=$(mkdir -p "$target" && cd "$target" && pwd)/counted" "$target/counting"
load "$target/counting/$host/release/blklab" >"$runs/said"
"$profdata" merge -o "$target/blklab.profdata" "$counted"
build "-Cprofile-use=$(cd "$target" && pwd)/blklab.profdata" "$target"
echo "$target/$host/release/blklab"
