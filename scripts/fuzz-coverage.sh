#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Lines of what each fuzz target is for that so many mutants of its seeds reach
# (1000 by default): scripts/fuzz-coverage.sh 1000
set -eu
cd "$(dirname "$0")/.."
runs=${1:-1000}
llvm=$(rustc --print target-libdir)/../bin
if [ ! -x "$llvm/llvm-cov" ]; then
    rustup component add llvm-tools
fi
folder=fuzz/target/coverage
mkdir -p "$folder"
export CARGO_TARGET_DIR="$PWD/$folder" RUSTFLAGS="-C instrument-coverage"
# Programs that building runs leave nothing.
export LLVM_PROFILE_FILE=/dev/null
program=$(cargo test -p blklab-exercise --test it --no-run --message-format json |
    sed -n 's/.*"name":"it".*"executable":"\([^"]*\)".*/\1/p')
printf '%-14s %8s %8s %7s  %s\n' target lines reached part crates
# What a target is for: crates without their prefix, or folders of them.
while read -r target crates; do
    raw=$folder/$target.profraw
    (cd crates/blklab-exercise && LLVM_PROFILE_FILE="$CARGO_TARGET_DIR/$target.profraw" \
        BLKLAB_FUZZ_TARGET=$target BLKLAB_FUZZ_RUNS=$runs "$program" mutants_of_every_target \
        >/dev/null 2>&1) || echo "$target: an input is wrong" >&2
    "$llvm/llvm-profdata" merge -sparse "$raw" -o "$folder/$target.profdata"
    sources=
    for crate in $crates; do
        case $crate in
        facade) sources="$sources crates/blklab/src" ;;
        */*) sources="$sources crates/blklab-$crate" ;;
        *) sources="$sources crates/blklab-$crate/src" ;;
        esac
    done
    # shellcheck disable=SC2086
    lines=$("$llvm/llvm-cov" export -summary-only -instr-profile "$folder/$target.profdata" \
        "$program" $sources |
        sed 's/.*"totals":.*"lines":{"count":\([0-9]*\),"covered":\([0-9]*\).*/\1 \2/')
    all=${lines% *} reached=${lines#* }
    printf '%-14s %8d %8d %5d %%  %s\n' "$target" "$all" "$reached" \
        $((100 * reached / all)) "$crates"
done <<'ROWS'
trace formats analysis
ctf formats/src/ctf
compact formats/src/compact
iolog fio/src/replay
fio_job fio
fio_result fiostat
experiment experiment
device_file experiment device
diskspecs device/src/disk/disksim
sums sums
context analysis infer
fit_device fit fiostat
run_directory facade report
saved_lines fidelity/src/reproduce/testbeds/journal.rs
export export formats
report report analysis
to_fio infer fio
run sim block sched pagecache fs
ROWS
