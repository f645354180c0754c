// SPDX-License-Identifier: GPL-2.0
/*
 * What a kernel in virtual time pays for its work.
 *
 * With an external calendar a processor takes no time at all. This charges a
 * fixed time each time that a tracepoint is passed; the code of the kernel
 * stays as it is. Prices are parameters of the command line, in nanoseconds:
 * processor_cost.issue=1500. A tracepoint without a price gets no probe.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/time-internal.h>
#include <asm/unistd.h>

void processor_cost_syscall(long nr);

struct toll {
	const char *tracepoint;
	unsigned int ns;
	struct tracepoint *at;
};

#define TOLL(name, point)						\
	static struct toll toll_##name = { .tracepoint = point };	\
	module_param_named(name, toll_##name.ns, uint, 0444)

TOLL(bio, "block_bio_queue");
TOLL(getrq, "block_getrq");
TOLL(insert, "block_rq_insert");
TOLL(issue, "block_rq_issue");
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

static struct toll *const tolls[] = {
	&toll_bio, &toll_getrq, &toll_insert, &toll_issue, &toll_complete,
	&toll_switch, &toll_wake, &toll_worker,
};

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

/* Serves all tracepoints: the toll is the first argument of every probe. */
static void probe(void *toll)
{
	charge(((struct toll *)toll)->ns);
}

void processor_cost_syscall(long nr)
{
	static unsigned int readings;

	if (!charges)
		return;
	if (nr != __NR_clock_gettime && nr != __NR_gettimeofday) {
		readings = 0;
		charge(syscall_ns);
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
	for_each_kernel_tracepoint(find, NULL);
	for (i = 0; i < ARRAY_SIZE(tolls); i++) {
		struct toll *toll = tolls[i];
		int err = -ENOENT;

		if (!toll->ns)
			continue;
		if (toll->at)
			err = tracepoint_probe_register(toll->at, (void *)probe,
							toll);
		if (err)
			panic("processor_cost: no tracepoint %s (%d)",
			      toll->tracepoint, err);
	}
	charges = true;
	return 0;
}
late_initcall(processor_cost_init);
