#!/bin/busybox sh
/bin/busybox mkdir -p /bin /sbin /usr/bin /usr/sbin
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/usr/sbin:/sbin HOME=/
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t debugfs none /sys/kernel/debug
mkdir -p /dev/shm /etc
# mkfs.nilfs2 looks there whether somebody uses the disk.
ln -s /proc/mounts /etc/mtab
mount -t tmpfs none /dev/shm
# Its marks are handed over by whoever writes them: kblockd, which would do it with a scheduler,
# would be ahead of others when the load begins.
[ ! -e /sys/block/@RESULTS@/queue/scheduler ] || echo none > /sys/block/@RESULTS@/queue/scheduler
cd /work
sh /script > log 2>&1
echo $? > status
cd /work
find . -type f | sort | cpio -o -H newc > /dev/@RESULTS@ 2> /dev/null
sync
poweroff -f
