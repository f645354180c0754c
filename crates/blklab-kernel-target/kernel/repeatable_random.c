// SPDX-License-Identifier: GPL-2.0
/*
 * Random numbers that are the same in each run.
 *
 * arch/um has its seeds, and what it calls random numbers of the processor,
 * from the machine that it runs on. This file is built in place of util.c,
 * which it contains: there they come from a generator with a fixed start,
 * SplitMix64 (Steele, Lea, Flood 2014).
 */
#define os_getrandom os_getrandom_of_machine
#include "util.c"
#undef os_getrandom

ssize_t os_getrandom(void *buf, size_t len, unsigned int flags);

static unsigned long long next_random(void)
{
	static unsigned long long state = 0x626c6b6c6162ULL;
	unsigned long long z;

	state += 0x9e3779b97f4a7c15ULL;
	z = state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	unsigned char *to = buf;
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = next_random() & 0xff;
	return len;
}
