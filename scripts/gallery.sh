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

# NAME RUNS: a published experiment, run again so many times. That a number is off is no
# failure here.
reproduce() {
    "$blklab" reproduce "$1" --seeds "$2" --output-format json --output "$work/$1.json" || [ $? -eq 1 ]
    "$blklab" report "$work/$1.json" -o "$pages/$1.html" --svg "$work/$1-svg"
    cp "$work/$1-svg/$1.svg" "docs/gallery/$1.svg"
}

show ssh "waiting cfq-timeline cfq-scheduler noop-dirty noop-requests" examples/ssh-beside-dd.toml \
    --sched noop,anticipatory,deadline,cfq
show sixteen-years "waiting 6.1-bfq-scheduler" examples/sixteen-years.toml
show quantum "waiting unpatched-scheduler posted-scheduler" examples/quantum-2010.toml
show near-and-far "waiting" examples/near-and-far.toml
studies=crates/blklab-fidelity/studies
show read-starvation "waiting requests" dd+cat --fs ext3,jbd_commit_sync=always --memory 4g \
    --set files=190 --set size=2g --set start=8
show pvfs2 "waiting" "$studies/pvfs2-2006/local.toml"
show compilebench "waiting xfs-timeline" "$studies/compilebench-2008/volume.toml" --set initial=2
show cgroups "waiting throughput" examples/cgroups.toml
show cgroup-weights "waiting bfq-of-6.1-throughput" examples/cgroup-weights.toml
show database "waiting latency q2c driver-tags" docs/gallery/database.fio --device nvme-datacenter
reproduce cfq-quantum-2010 1
ls "$pages"
