#!/bin/sh
# Figures and digests of nearly 300 small runs over releases, schedulers, devices,
# filesystems, patches and control groups, as CSV:
#
#   scripts/digests.sh BLKLAB >before.csv
#
# A change that is meant to change no behaviour gives the same bytes as the
# command before it.
set -eu
blklab=${1:?"usage: scripts/digests.sh BLKLAB"}
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/direct.fio" <<'JOB'
[global]
filename=/dev/sda
direct=1
size=2g
number_ios=150
[reads]
ioengine=libaio
rw=randread
bsrange=4k-64k
iodepth=8
[stream]
ioengine=psync
rw=write
bs=128k
JOB
cat >"$dir/files.fio" <<'JOB'
[global]
size=8m
bs=4k
[writer]
rw=write
bs=64k
end_fsync=1
[syncs]
rw=randwrite
fsync=8
number_ios=60
[reader]
rw=randread
bsrange=4k-44k
number_ios=80
startdelay=20ms
JOB

# run NAME ARGUMENT...: the table of one matrix.
run() {
    echo "# $*" | sed "s#$dir/##g"
    shift
    "$blklab" run "$@" --output-format csv 2>/dev/null || echo "exit code $?"
}

for device in sata-7200-2008 nvme-consumer; do
    for job in direct files; do
        run single "$dir/$job.fio" --device "$device" --sched noop,deadline,cfq \
            --kernel 2.6.16,2.6.22,2.6.24,2.6.28,2.6.33,2.6.39,3.10,4.19
        run multi "$dir/$job.fio" --device "$device" --sched none,mq-deadline,kyber,bfq \
            --kernel 5.0,5.4,5.10,5.15,6.1,6.6,6.12,6.18
    done
done
run anticipatory "$dir/files.fio" --sched anticipatory --kernel 2.6.18,2.6.28,2.6.32
for fs in ext2 ext3 reiserfs ntfs-3g; do
    run "$fs" "$dir/files.fio" --fs "$fs" --kernel 2.6.28,3.2
done
for fs in ext4 xfs btrfs nilfs2; do
    run "$fs" "$dir/files.fio" --fs "$fs" --kernel 2.6.33,4.19,6.1,6.18
done
run arrays "$dir/files.fio" --kernel 2.6.28 --fs ext3 --sched cfq,deadline --md raid0:2,raid1:2
run patches examples/quantum-2010.toml
run weights examples/cgroup-weights.toml
run limits examples/cgroups.toml
run trims examples/trims.toml
run laws "$dir/direct.fio" --kernel 4.19,6.12 --device null_blk,scsi_debug,parallel,serial
run presets "$dir/direct.fio" --kernel 6.12 --sched none \
    --device samsung-850-evo,samsung-980-pro,micron-7300-pro,ufs-2.1,gp3,smr-8tb
run one-processor "$dir/direct.fio" --kernel 5.10,6.1,6.12 --sched mq-deadline,bfq \
    --device nvme-consumer --set cpus=1
run again --trace-in testdata/blktrace/linux-6.1-mq-deadline.blktrace.0.zst --loop closed \
    --kernel 6.1 --sched none,mq-deadline,kyber,bfq
