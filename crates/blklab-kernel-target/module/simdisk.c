// SPDX-License-Identifier: GPL-2.0
/*
 * simdisk: a disk without a disk, whose commands take the time that a law says.
 *
 * It is the device `simdisk` of blklab in a kernel that runs elsewhere than in blklab's
 * clock. One command is served at a time. README.md beside this file has its laws and
 * parameters. Data are not kept: reads leave what was in their pages.
 */

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/version.h>

#define NAME "simdisk"
#define NONE U64_MAX

static unsigned int mode;
module_param(mode, uint, 0444);
static unsigned long fixed_ns = 100000;
module_param(fixed_ns, ulong, 0444);
static unsigned long sector_ns = 5000;
module_param(sector_ns, ulong, 0444);
static unsigned int order;
module_param(order, uint, 0444);
static unsigned long spt = 1024;
module_param(spt, ulong, 0444);
static unsigned long ra = 512;
module_param(ra, ulong, 0444);
static unsigned long seek_min_ns = 1000000;
module_param(seek_min_ns, ulong, 0444);
static unsigned long seek_var_ns = 14000000;
module_param(seek_var_ns, ulong, 0444);
static unsigned long sectors = 8388608;
module_param(sectors, ulong, 0444);
static unsigned int queue_depth = 31;
module_param(queue_depth, uint, 0444);
static unsigned int submit_queues = 1;
module_param(submit_queues, uint, 0444);
static unsigned int nr_devices = 1;
module_param(nr_devices, uint, 0444);

/* What the medium passes by itself after a read. */
struct run {
	bool there;
	u64 low;	/* the first sector that is still held */
	u64 end;	/* the medium passed this sector ... */
	s64 at_ns;	/* ... then */
};

struct disk {
	struct gendisk *gd;
	struct blk_mq_tag_set tags;
	spinlock_t lock;
	struct list_head waiting;	/* of struct command, the oldest first */
	struct request *served;
	struct hrtimer timer;
	u64 head_track;
	struct run run;
};

struct command {
	struct list_head node;
};

static struct disk *disks;
static int major;
/* Time of a seek by its distance in tracks. */
static u32 *seek_ns;
static u64 nr_tracks, skew, turn_ns;

static u64 track_of(u64 sector)
{
	return div64_u64(sector, spt);
}

static u64 distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* From then on until a sector is under the head. */
static u64 positioning_ns(const struct disk *d, u64 begin, u64 sector)
{
	u64 track = track_of(sector), far = distance(track, d->head_track);
	u64 seek = seek_ns[min(far, nr_tracks)], place, angle, now;

	div64_u64_rem(sector + track * skew, spt, &place);
	angle = place * sector_ns;
	div64_u64_rem(begin + seek, turn_ns, &now);
	return seek + (angle >= now ? angle - now : angle + turn_ns - now);
}

/* How long n sectors pass the head; changes: tracks that end before the last of them. */
static u64 passing_ns(u64 n, u64 changes)
{
	return (n + changes * skew) * sector_ns;
}

/* The same for a medium that runs on from a sector, where a track may just have ended. */
static u64 running_ns(u64 from, u64 n)
{
	u64 before = from ? track_of(from - 1) : 0;

	return n ? passing_ns(n, track_of(from + n - 1) - before) : 0;
}

static u64 lowest(u64 low, u64 end)
{
	return max_t(u64, low, end > ra ? end - ra : 0);
}

static bool is_held(const struct disk *d, u64 begin, u64 sector, u64 n)
{
	const struct run *r = &d->run;

	if (!r->there || sector < r->low || sector + n > r->end + ra)
		return false;
	return sector <= r->end ||
	       r->at_ns + (s64)running_ns(r->end, sector - r->end) <= (s64)begin;
}

static u64 from_medium(struct disk *d, u64 ready, u64 sector, u64 n)
{
	u64 last = sector + max_t(u64, n, 1) - 1;
	u64 wait = positioning_ns(d, ready, sector);

	d->head_track = track_of(last);
	return ready + wait + passing_ns(n, track_of(last) - track_of(sector));
}

static u64 from_held(struct disk *d, u64 begin, u64 ready, u64 sector, u64 n)
{
	struct run *r = &d->run;
	u64 end = sector + n;
	s64 at;

	if (end <= r->end || (s64)begin > r->at_ns + (s64)running_ns(r->end, ra))
		return ready;
	at = r->at_ns + (s64)running_ns(r->end, end - r->end);
	d->head_track = track_of(end - 1);
	*r = (struct run){ true, lowest(r->low, end), end, at };
	return max_t(s64, at, ready);
}

static bool has_data(struct request *rq)
{
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE;
}

/* When a command ends that begins now. */
static u64 end_of(struct disk *d, struct request *rq, u64 now)
{
	u64 sector = blk_rq_pos(rq), n = blk_rq_sectors(rq), ready = now + fixed_ns, end;

	if (!has_data(rq))
		return now;
	if (!mode)
		return ready + n * sector_ns;
	if (req_op(rq) == REQ_OP_WRITE) {
		d->run.there = false;
		return from_medium(d, ready, sector, n);
	}
	if (is_held(d, now, sector, n))
		return from_held(d, now, ready, sector, n);
	end = from_medium(d, ready, sector, n);
	d->run = (struct run){ true, lowest(sector, sector + n), sector + n, end };
	return end;
}

static u64 cost_ns(struct disk *d, struct request *rq, u64 now)
{
	u64 sector = blk_rq_pos(rq);

	if (!has_data(rq))
		return 0;
	if (req_op(rq) == REQ_OP_READ && is_held(d, now, sector, blk_rq_sectors(rq)))
		return 0;
	return positioning_ns(d, now + fixed_ns, sector);
}

/* The command that is next: the oldest, or the one that is there first. */
static struct request *chosen(struct disk *d, u64 now)
{
	struct command *c, *best = NULL;
	u64 least = NONE;

	list_for_each_entry(c, &d->waiting, node) {
		u64 cost = mode && order ? cost_ns(d, blk_mq_rq_from_pdu(c), now) : 0;

		if (!best || cost < least) {
			best = c;
			least = cost;
		}
		if (!(mode && order))
			break;
	}
	if (!best)
		return NULL;
	list_del(&best->node);
	return blk_mq_rq_from_pdu(best);
}

/* Begins the next command; the lock is held and nothing is served. */
static void begin_next(struct disk *d, u64 now)
{
	d->served = chosen(d, now);
	if (d->served)
		hrtimer_start(&d->timer, ns_to_ktime(end_of(d, d->served, now)),
			      HRTIMER_MODE_ABS);
}

static enum hrtimer_restart command_ends(struct hrtimer *timer)
{
	struct disk *d = container_of(timer, struct disk, timer);
	/* The next one begins when this one ends, not when it is noticed. */
	u64 now = ktime_to_ns(hrtimer_get_expires(timer));
	struct request *rq;
	unsigned long flags;

	spin_lock_irqsave(&d->lock, flags);
	rq = d->served;
	begin_next(d, now);
	spin_unlock_irqrestore(&d->lock, flags);
	if (rq)
		blk_mq_complete_request(rq);
	return HRTIMER_NORESTART;
}

static void complete_rq(struct request *rq)
{
	blk_mq_end_request(rq, BLK_STS_OK);
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct disk *d = hctx->queue->queuedata;
	struct command *c = blk_mq_rq_to_pdu(bd->rq);
	unsigned long flags;

	blk_mq_start_request(bd->rq);
	spin_lock_irqsave(&d->lock, flags);
	list_add_tail(&c->node, &d->waiting);
	if (!d->served)
		begin_next(d, ktime_get_ns());
	spin_unlock_irqrestore(&d->lock, flags);
	return BLK_STS_OK;
}

static const struct blk_mq_ops queue_ops = {
	.queue_rq = queue_rq,
	.complete = complete_rq,
};

static const struct block_device_operations disk_ops = {
	.owner = THIS_MODULE,
};

/* What the measured disk had: no cache, requests of at most 512 KiB and 128 segments. */
#define MAX_SECTORS 1024
#define MAX_SEGMENTS 128

static struct gendisk *make_gendisk(struct disk *d)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	struct queue_limits limits = {
		.max_hw_sectors = MAX_SECTORS,
		.max_segments = MAX_SEGMENTS,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
		.features = mode ? BLK_FEAT_ROTATIONAL : 0,
#endif
	};
	struct gendisk *gd = blk_mq_alloc_disk(&d->tags, &limits, d);
#else
	struct gendisk *gd = blk_mq_alloc_disk(&d->tags, d);

	if (!IS_ERR(gd)) {
		blk_queue_max_hw_sectors(gd->queue, MAX_SECTORS);
		blk_queue_max_segments(gd->queue, MAX_SEGMENTS);
	}
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	if (!IS_ERR(gd) && !mode)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, gd->queue);
#endif
	return gd;
}

static int add(struct disk *d, int i)
{
	int err;

	spin_lock_init(&d->lock);
	INIT_LIST_HEAD(&d->waiting);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&d->timer, command_ends, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(&d->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	d->timer.function = command_ends;
#endif
	d->tags.ops = &queue_ops;
	d->tags.nr_hw_queues = submit_queues;
	d->tags.queue_depth = queue_depth;
	d->tags.numa_node = NUMA_NO_NODE;
	d->tags.cmd_size = sizeof(struct command);
	err = blk_mq_alloc_tag_set(&d->tags);
	if (err)
		return err;
	d->gd = make_gendisk(d);
	if (IS_ERR(d->gd)) {
		err = PTR_ERR(d->gd);
		goto no_disk;
	}
	d->gd->major = major;
	d->gd->first_minor = i * DISK_MAX_PARTS;
	d->gd->minors = DISK_MAX_PARTS;
	d->gd->fops = &disk_ops;
	snprintf(d->gd->disk_name, DISK_NAME_LEN, NAME "%d", i);
	set_capacity(d->gd, sectors);
	err = add_disk(d->gd);
	if (!err)
		return 0;
	put_disk(d->gd);
no_disk:
	blk_mq_free_tag_set(&d->tags);
	return err;
}

static void take_away(struct disk *d)
{
	del_gendisk(d->gd);
	hrtimer_cancel(&d->timer);
	put_disk(d->gd);
	blk_mq_free_tag_set(&d->tags);
}

/* The root of a number in whole numbers. */
static u64 root_of(u64 n)
{
	u64 root = 0, bit = 1ULL << 62;

	while (bit > n)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		bool fits = n >= root + bit;

		if (fits)
			n -= root + bit;
		root = (root >> 1) + (fits ? bit : 0);
	}
	return root;
}

static int make_law(void)
{
	u64 i;

	if (mode > 1 || order > 1 || !spt || !sectors || !queue_depth || !submit_queues ||
	    !nr_devices || (mode && !sector_ns))
		return -EINVAL;
	nr_tracks = max_t(u64, track_of(sectors), 1);
	seek_ns = kvcalloc(nr_tracks + 1, sizeof(*seek_ns), GFP_KERNEL);
	if (!seek_ns)
		return -ENOMEM;
	for (i = 1; i <= nr_tracks; i++) {
		u64 part = root_of(div64_u64(i << 32, nr_tracks));

		seek_ns[i] = seek_min_ns + ((seek_var_ns * part) >> 16);
	}
	skew = sector_ns ? div64_u64(seek_ns[1] + sector_ns - 1, sector_ns) : 0;
	turn_ns = max_t(u64, (u64)spt * sector_ns, 1);
	return 0;
}

static int __init simdisk_init(void)
{
	int err = make_law();
	unsigned int i;

	if (err)
		return err;
	disks = kvcalloc(nr_devices, sizeof(*disks), GFP_KERNEL);
	err = -ENOMEM;
	if (!disks)
		goto no_disks;
	major = register_blkdev(0, NAME);
	err = major;
	if (major < 0)
		goto no_major;
	for (i = 0; i < nr_devices; i++) {
		err = add(&disks[i], i);
		if (err)
			goto not_all;
	}
	return 0;
not_all:
	while (i--)
		take_away(&disks[i]);
	unregister_blkdev(major, NAME);
no_major:
	kvfree(disks);
no_disks:
	kvfree(seek_ns);
	return err;
}

static void __exit simdisk_exit(void)
{
	unsigned int i;

	for (i = 0; i < nr_devices; i++)
		take_away(&disks[i]);
	unregister_blkdev(major, NAME);
	kvfree(disks);
	kvfree(seek_ns);
}

module_init(simdisk_init);
module_exit(simdisk_exit);
MODULE_DESCRIPTION("A disk whose commands take the time that a law says");
MODULE_LICENSE("GPL");
