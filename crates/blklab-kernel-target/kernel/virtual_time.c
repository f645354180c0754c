// SPDX-License-Identifier: GPL-2.0
/*
 * The scheduler's clock of a kernel in virtual time.
 *
 * arch/um counts jiffies, so that the fair scheduler sees no run time below a
 * tick. Here sched_clock() is the virtual clock itself. This file is built in
 * place of time.c, which it contains: only there is the clock known.
 */
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/jiffies.h>

/* What time.c may define becomes another function, which nobody calls. */
#define sched_clock sched_clock_of_jiffies
unsigned long long sched_clock_of_jiffies(void);
#include "time.c"
#undef sched_clock

notrace unsigned long long sched_clock(void)
{
	if (time_travel_mode == TT_MODE_INFCPU ||
	    time_travel_mode == TT_MODE_EXTERNAL)
		return time_travel_time;
	return (unsigned long long)(jiffies - INITIAL_JIFFIES) *
	       (NSEC_PER_SEC / HZ);
}
