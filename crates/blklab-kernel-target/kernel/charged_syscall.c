// SPDX-License-Identifier: GPL-2.0
/*
 * Charges system calls as they come in.
 *
 * User Mode Linux has their tracepoints in its newest releases only. This file
 * is built in place of syscall.c, which it contains: the function that takes
 * them gets another name, and is called once the price is paid.
 */
#include <linux/types.h>
#include <linux/ptrace.h>
#include <kern_util.h>
#include <sysdep/ptrace.h>

void handle_uncharged_syscall(struct uml_pt_regs *r);
void processor_cost_syscall(long nr, unsigned long fd, unsigned long buf,
			    unsigned long count);

#define handle_syscall handle_uncharged_syscall
#include "syscall.c"
#undef handle_syscall

void handle_syscall(struct uml_pt_regs *r)
{
	processor_cost_syscall(PT_SYSCALL_NR(r->gp), UPT_SYSCALL_ARG1(r),
			       UPT_SYSCALL_ARG2(r), UPT_SYSCALL_ARG3(r));
	handle_uncharged_syscall(r);
}
