// SPDX-License-Identifier: GPL-2.0
/*
 * What a kernel in virtual time pays for its work.
 *
 * With an external calendar a processor takes no time at all. This charges a
 * fixed time each time that a tracepoint is passed, and by the page what is
 * copied or mapped; the code of the kernel stays as it is. Prices are
 * parameters of the command line, in nanoseconds: processor_cost.issue=1500.
 * A tracepoint without a price gets no probe.
 */
#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <linux/time-internal.h>
#include <asm/unistd.h>

void processor_cost_syscall(long nr, unsigned long fd, unsigned long buf,
			    unsigned long count);

struct toll {
	const char *tracepoint;
	/* None: the toll's own price each time. */
	void *probe;
	/* What a pass costs; 0: nothing, and there is no probe. */
	unsigned int ns;
	struct tracepoint *at;
};

#define TOLL(name, point)						\
	static struct toll toll_##name = { .tracepoint = point };	\
	module_param_named(name, toll_##name.ns, uint, 0444)

TOLL(getrq, "block_getrq");
TOLL(insert, "block_rq_insert");
TOLL(complete, "block_rq_complete");
TOLL(switch, "sched_switch");
TOLL(wake, "sched_waking");
TOLL(worker, "workqueue_execute_start");

/* A reading of the clock, which on other machines is no system call. */
static unsigned int clock_ns = 300;
module_param_named(clock, clock_ns, uint, 0444);

/* Who reads the clock so often in a row waits for it to move ... */
static unsigned int spin_after = 64;
module_param(spin_after, uint, 0444);
/* ... and pays this from there on. */
static unsigned int spin_ns = 20000;
module_param_named(spin, spin_ns, uint, 0444);

/* Any other system call. */
static unsigned int syscall_ns;
module_param_named(syscall, syscall_ns, uint, 0444);

/* A read or write by way of the page cache, or a call that syncs a file ... */
static unsigned int cached_ns;
module_param_named(cached, cached_ns, uint, 0444);
/* ... a page that it copies ... */
static unsigned int page_ns;
module_param_named(page, page_ns, uint, 0444);
/* ... and each one that a write has behind its first. */
static unsigned int further_page_ns;
module_param_named(further_page, further_page_ns, uint, 0444);

/* A bio of the user's own pages, or one of a task that carries none ... */
static unsigned int bio_ns;
module_param_named(bio, bio_ns, uint, 0444);
/* ... and each of these pages but the first. */
static unsigned int direct_page_ns;
module_param_named(direct_page, direct_page_ns, uint, 0444);
/* A page that is written from the page cache. */
static unsigned int writeout_ns;
module_param_named(writeout, writeout_ns, uint, 0444);

/* A request that the driver gets ... */
static unsigned int issue_ns;
module_param_named(issue, issue_ns, uint, 0444);
/* ... and each page of it that the driver copies. */
static unsigned int copy_ns;
module_param_named(copy, copy_ns, uint, 0444);

/* Not before the end of the boot, and only with a clock that stands still. */
static bool charges;

/*
 * May run with interrupts off, under spinlocks and inside interrupts: what
 * falls due meanwhile stays pending until interrupts are on again.
 */
static void charge(unsigned long ns)
{
	if (ns)
		time_travel_ndelay(ns);
}

/* The toll is the first argument of every probe. */
static void probe(void *toll)
{
	charge(((struct toll *)toll)->ns);
}

static unsigned long pages_in(unsigned long bytes)
{
	return (bytes + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

/* Times a price, less what the first page is spared. */
static unsigned long further(unsigned long pages, unsigned int ns)
{
	return pages > 1 ? (pages - 1) * ns : 0;
}

static bool is_of_user(struct page *page)
{
	return !PageSlab(page) && PageAnon(page);
}

static bool is_of_cache(struct page *page)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 16, 0)
	return page_mapping(page);
#else
	return folio_mapping(page_folio(page));
#endif
}

static void charge_bio(struct bio *bio)
{
	unsigned long pages = pages_in(bio->bi_iter.bi_size);

	/* One that a stack of devices has made of another is part of it. */
	if (bio_flagged(bio, BIO_CLONED))
		return;
	if (!bio_has_data(bio)) {
		if (!(current->flags & PF_KTHREAD))
			charge(bio_ns);
	} else if (is_of_user(bio_page(bio))) {
		charge(bio_ns + further(pages, direct_page_ns));
	} else if (op_is_write(bio_op(bio)) && is_of_cache(bio_page(bio))) {
		charge(pages * writeout_ns);
	}
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
static void probe_bio(void *toll, struct request_queue *q, struct bio *bio)
{
	charge_bio(bio);
}
#else
static void probe_bio(void *toll, struct bio *bio)
{
	charge_bio(bio);
}
#endif

static void probe_issue(void *toll, struct request *rq)
{
	charge(issue_ns + pages_in(blk_rq_bytes(rq)) * copy_ns);
}

static struct toll toll_bio = {
	.tracepoint = "block_bio_queue",
	.probe = probe_bio,
};
static struct toll toll_issue = {
	.tracepoint = "block_rq_issue",
	.probe = probe_issue,
};

static struct toll *const tolls[] = {
	&toll_bio, &toll_getrq, &toll_insert, &toll_issue, &toll_complete,
	&toll_switch, &toll_wake, &toll_worker,
};

/* Whether a file is on a disk, or is one, and goes through the page cache. */
static bool is_cached(struct file *file)
{
	struct inode *inode = file_inode(file);

	if (file->f_flags & O_DIRECT)
		return false;
	if (S_ISBLK(inode->i_mode))
		return true;
	return S_ISREG(inode->i_mode) &&
	       inode->i_sb->s_type->fs_flags & FS_REQUIRES_DEV;
}

static unsigned long bytes_in(unsigned long vectors, unsigned long count)
{
	const struct iovec __user *from = (const void __user *)vectors;
	unsigned long bytes = 0;
	struct iovec v;

	for (; count; count--, from++) {
		if (count > UIO_MAXIOV || copy_from_user(&v, from, sizeof(v)))
			break;
		bytes += v.iov_len;
	}
	return bytes;
}

/* What a call moves by way of the page cache, or syncs. */
static void charge_cached(long nr, unsigned long fd, unsigned long buf,
			  unsigned long count)
{
	unsigned long bytes = 0, pages;
	bool writes = false;
	struct file *file;
	bool cached;

	switch (nr) {
	case __NR_fsync:
	case __NR_fdatasync:
	case __NR_sync_file_range:
		break;
	case __NR_write:
	case __NR_pwrite64:
		writes = true;
		fallthrough;
	case __NR_read:
	case __NR_pread64:
		bytes = count;
		break;
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
		writes = true;
		fallthrough;
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
		bytes = bytes_in(buf, count);
		break;
	default:
		return;
	}
	file = fget(fd);
	if (!file)
		return;
	cached = is_cached(file);
	fput(file);
	if (!cached)
		return;
	pages = pages_in(bytes);
	if (writes)
		charge(cached_ns + (pages ? page_ns : 0) +
		       further(pages, further_page_ns));
	else
		charge(cached_ns + pages * page_ns);
}

void processor_cost_syscall(long nr, unsigned long fd, unsigned long buf,
			    unsigned long count)
{
	static unsigned int readings;

	if (!charges)
		return;
	if (nr != __NR_clock_gettime && nr != __NR_gettimeofday) {
		readings = 0;
		charge(syscall_ns);
		if (cached_ns || page_ns)
			charge_cached(nr, fd, buf, count);
		return;
	}
	charge(++readings > spin_after ? spin_ns : clock_ns);
}

static void find(struct tracepoint *at, void *unused)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tolls); i++)
		if (!strcmp(at->name, tolls[i]->tracepoint))
			tolls[i]->at = at;
}

static int __init processor_cost_init(void)
{
	size_t i;

	if (time_travel_mode != TT_MODE_INFCPU &&
	    time_travel_mode != TT_MODE_EXTERNAL)
		return 0;
	toll_bio.ns = bio_ns + direct_page_ns + writeout_ns;
	toll_issue.ns = issue_ns + copy_ns;
	for_each_kernel_tracepoint(find, NULL);
	for (i = 0; i < ARRAY_SIZE(tolls); i++) {
		struct toll *toll = tolls[i];
		int err = -ENOENT;

		if (!toll->ns)
			continue;
		if (!toll->probe)
			toll->probe = probe;
		if (toll->at)
			err = tracepoint_probe_register(toll->at, toll->probe,
							toll);
		if (err)
			panic("processor_cost: no tracepoint %s (%d)",
			      toll->tracepoint, err);
	}
	charges = true;
	return 0;
}
late_initcall(processor_cost_init);
