#!/bin/sh
# Draws the gallery: runs the experiments that it shows, puts their pictures into
# docs/gallery and their pages, which are too large to be kept, into target/gallery.
#
#   scripts/gallery.sh BLKLAB
set -eu
blklab=$(realpath "$1")
cd "$(dirname "$0")/.."
pages=target/gallery
mkdir -p "$pages"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# NAME PICTURES ARGUMENTS...: an experiment, and which of its pictures are kept.
show() {
    name=$1
    pictures=$2
    shift 2
    "$blklab" run "$@" --out "$work/$name" >/dev/null
    "$blklab" report "$work/$name" -o "$pages/$name.html" --svg "$work/$name-svg"
    for picture in $pictures; do
        cp "$work/$name-svg/$picture.svg" "docs/gallery/$name-$picture.svg"
    done
}

show ssh "waiting cfq-timeline" examples/ssh-beside-dd.toml \
    --sched noop,anticipatory,deadline,cfq
show near-and-far "waiting" examples/near-and-far.toml
show cgroups "waiting throughput" examples/cgroups.toml
show cgroup-weights "waiting bfq-of-6.1-throughput" examples/cgroup-weights.toml
show database "waiting latency" docs/gallery/database.fio --device nvme-datacenter
ls "$pages"
