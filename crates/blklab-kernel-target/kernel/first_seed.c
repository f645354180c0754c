// SPDX-License-Identifier: GPL-2.0
/*
 * A first seed of random numbers for kernels that get none from arch/um.
 *
 * Before 5.19 a User Mode Linux has no entropy until its devices bring some,
 * and who asks for random numbers waits for ever. It gets a fixed seed.
 */
#include <linux/init.h>
#include <linux/random.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0)
static int __init first_seed_init(void)
{
	static const char seed[64] = "blklab";

	add_bootloader_randomness(seed, sizeof(seed));
	return 0;
}
early_initcall(first_seed_init);
#endif
