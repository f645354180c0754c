// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the machine and of `/proc/sys/vm`.
//!
//! Releases of the files: mm/page-writeback.c, kernel/sysctl.c; of defaults:
//! `Features` of the page cache.

use super::{
    Access, Form, Home, MULTI_QUEUE, Place, Setting, Value, default_of, setting, settings,
};
use blklab_kernel::{KernelVersion, Unit};

const V2_6_22: KernelVersion = KernelVersion::v2_6(22);
const V2_6_29: KernelVersion = KernelVersion::v2_6(29);
const V2_6_30: KernelVersion = KernelVersion::v2_6(30);

/// The folder of what is said of memory.
const VM: Place = Place::Folder("/proc/sys/vm");

/// A row of percent of the memory.
const fn percent(default: i64) -> Setting {
    setting(Unit::Percent, default, (0, 100))
}

/// A row of 1/100 s.
const fn centisecs(default: i64) -> Setting {
    setting(Unit::Centisecs, default, (0, i32::MAX as i64))
}

/// A row of processor time in ns; a default of -1 is that of what is not set.
const fn cost_ns(default: i64) -> Setting {
    setting(Unit::Ns, default, (0, 1_000_000_000))
}

settings! {
    /// Memory, processors and `/proc/sys/vm`.
    struct Vm with values at vm, Home::Machine;

    /// memory of the machine (a size such as 2g)
    memory_bytes: u64 = setting(Unit::KiB, 8 << 20, (16 << 10, 1 << 40))
        .named("memory").form(Form::Size).per_unit(1024).taken_at(Place::Boot("mem"))
        .manual("memory of the machine, a size such as `2g`", "8g");

    /// percent of memory dirty at which writers are held back
    dirty_ratio: u32 = percent(40).taken_at(VM).then(V2_6_22, 10).then(V2_6_30, 20);

    /// percent of memory dirty at which background writing starts
    dirty_background_ratio: u32 = percent(10).taken_at(VM).then(V2_6_22, 5).then(V2_6_30, 10);

    /// bytes dirty at which writers are held back, in place of dirty_ratio
    dirty_bytes: u64 = setting(Unit::Bytes, 0, (8192, 1 << 40)).since(V2_6_29).taken_at(VM)
        .manual("bytes dirty at which writers are held back, in place of `dirty_ratio` (2.6.29)", "");

    /// bytes dirty at which background writing starts, in place of the ratio
    dirty_background_bytes: u64 = setting(Unit::Bytes, 0, (1, 1 << 40)).since(V2_6_29).taken_at(VM)
        .manual("bytes dirty at which background writing starts, in place of the ratio (2.6.29)", "");

    /// period of periodic writing, in 1/100 s
    dirty_writeback_centisecs: u32 = centisecs(500).taken_at(VM);

    /// age at which periodic writing takes a file, in 1/100 s
    dirty_expire_centisecs: u32 = centisecs(3000).taken_at(VM);

    /// processor time of one I/O in fio and its system call
    io_cost_ns: u32 = cost_ns(1000).range(1, 1_000_000_000)
        .manual("one I/O in fio and its system call; of fsync, fdatasync \
              and sync_file_range it counts as latency", "");

    /// processor time of one direct I/O that counts as its latency
    call_cost_ns: u32 = cost_ns(0)
        .manual("the part of a direct I/O that counts as its latency; of syncs of direct jobs and of \
              trims, too", "");

    /// processor time of each further page of a direct I/O in its call
    direct_page_cost_ns: u32 = cost_ns(0)
        .manual("each page of a direct I/O but the first, in its system call", "");

    /// processor time of one completion of an asynchronous I/O in fio
    reap_cost_ns: u32 = cost_ns(0)
        .manual("one completion of an asynchronous I/O in fio", "");

    /// processor time of a buffered page beside its copying
    page_cost_ns: u32 = cost_ns(1000)
        .manual("a buffered page, beside its copying", "");

    /// processor time of a page that a buffered write has behind its first
    further_page_cost_ns: u32 = cost_ns(1000)
        .effective(|e, _| {
            // As it is written: processor time of the machine comes on top of it.
            let ns = e.vm.further_page_cost_ns;
            Some(i64::from(ns.unwrap_or_else(|| e.vm.page_cost_ns(e.kernel))))
        })
        .manual("each page of a buffered write but the first, beside its copying, as pages of one \
              folio take less than pages of their own", "that of page_cost_ns");

    /// time to get going after a sleep, where tasks share a processor
    switch_cost_ns: u32 = cost_ns(2000).since(MULTI_QUEUE)
        .manual("getting going after a sleep, with one processor, from 5.0 on", "");

    /// time of an interrupt of the device, where tasks share a processor
    interrupt_cost_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("an interrupt of the device, for each command that ends, with one processor, from 5.0 on", "");

    /// time to wake a task, of the task that wakes it, where tasks share a processor
    wake_cost_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("waking a task: time of the interrupt or the task that wakes it, with one processor, from 5.0 on", "");

    /// from the wake-up of a task until it runs, where there are several processors
    wake_up_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("with several processors, from 5.0 on: from the wake-up of a task, or of kblockd, until it \
              runs", "");

    /// what a wake-up by another processor takes more, where there are several
    remote_wake_ns: u32 = cost_ns(5000).since(MULTI_QUEUE)
        .manual("with several processors, from 5.0 on: what it takes more to wake a task from another \
              processor, which is called by an interrupt and leaves its idle loop; a task that its own \
              processor woke may have a tag again before", "");

    /// several processors run one at a time
    cpu_turns: bool = setting(Unit::Bool, 0, (0, 1)).since(MULTI_QUEUE)
        .manual("1: of several processors one runs at a time, until it has nothing to do or a timer is \
              due, as QEMU emulates them in one thread with `-icount`; times that hold with one processor \
              hold then, and `wake_up_ns` and `remote_wake_ns` do not; from 5.0 on", "");

    /// time of a request that a task inserts, where tasks share a processor
    insert_cost_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("a request that a task brings to the scheduler, with one processor, from 5.0 on", "");

    /// time from the end of a command in the device until the kernel knows of it
    interrupt_latency_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("from the end of a command in the device until the kernel knows of it: the way of \
              the interrupt, from 5.0 on", "");

    /// time of a request from scheduler to driver, where tasks share a processor
    dispatch_cost_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("a request from the scheduler to the driver, with one processor, from 5.0 on", "");

    /// time of a run of kblockd beside its requests, where tasks share a processor
    worker_cost_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("a run of kblockd, beside its requests, with one processor, from 5.0 on", "");

    /// time from one hand-over of kblockd to the next in a run, where tasks share a processor
    hand_over_gap_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("from one request that kblockd hands over to the next in the same run, with one \
              processor, from 5.0 on: 0 hands all of them over at once", "");

    /// time of a page that null_blk with memory_backed copies
    driver_copy_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("a page that `null_blk` copies with `memory_backed`, with one processor, from 5.0 on", "");

    /// whether requests and their schedulers take processor time, and processors wait for locks
    processor_time: bool = setting(Unit::Bool, 1, (0, 1)).since(MULTI_QUEUE).without(0)
        .manual("1: requests take processor time, from 5.0 on, and processors wait for the \
              scheduler's lock, as measured on one machine; 0: only what the next three give",
             "1; where a trace is run again 0");

    /// processor time of a request in the block layer and the driver
    request_cost_ns: u32 = cost_ns(-1).since(MULTI_QUEUE)
        .manual("a request in the block layer and the driver, to its end, without its scheduler; \
              its submitter has it before its next bio", "1620; with `processor_time=0` 0");

    /// processor time of a request that its scheduler adds; 0: and no lock
    sched_cost_ns: u32 = cost_ns(-1).since(MULTI_QUEUE)
        .manual("what the scheduler adds to it, where no other task wants its lock; 0: nothing, and \
              no lock",
             "none 0, mq-deadline 600, kyber 670, bfq 1520; with `processor_time=0` 0");

    /// what a turn with the scheduler's lock takes more after another processor's
    lock_transfer_ns: u32 = cost_ns(430).since(MULTI_QUEUE)
        .manual("with several processors: what each turn with the scheduler's lock takes more \
              after one of another processor", "");

    /// processor time of a page written from the page cache to the disk
    writeout_cost_ns: u32 = cost_ns(0)
        .manual("a page that is written from the page cache to the disk", "");

    /// processor time of fio's main process, every 10 ms; 0: it sleeps
    look_cost_ns: u32 = cost_ns(0)
        .manual("fio's main process, every 10 ms; 0: it sleeps while jobs run, and starts them \
              when their delays end, not at its next look, every 100 ms", "");

    /// processor time of fio's main process, every 100 ms before all jobs run
    start_look_cost_ns: u32 = cost_ns(0)
        .manual("fio's main process, every 100 ms while jobs wait to be started", "");

    /// processor time of a fio job from its release to its first I/O
    job_start_ns: u32 = cost_ns(0)
        .manual("a fio job from its release to its first I/O; jobs that start together take \
              turns if there is one processor", "");

    /// processor time of a fio job's start for each I/O in flight
    io_u_setup_ns: u32 = cost_ns(0)
        .manual("the start of a fio job, for each I/O that it may have in flight (`init_io_u`)", "");

    /// processor time of a fio job's start for each page of buffers
    buffer_page_ns: u32 = cost_ns(0)
        .manual("the start of a fio job, for each page of its buffers, which fio fills; of a job that only \
              reads past the page cache when the first read uses it", "");

    /// what a fio job takes longer for its second I/O and for the first that has ended
    first_call_ns: u32 = cost_ns(0)
        .manual("what a fio job takes longer for its second direct I/O and for the first \
              that has ended, as it walks these paths for the first time", "");

    /// processor time that a fio job takes to get ready
    job_setup_ns: u32 = cost_ns(0).since(MULTI_QUEUE)
        .manual("what a fio job has had of the processor when it begins, with one processor: up to 6.5 it \
              is behind jobs that slept meanwhile; it begins no later", "");

    /// how long the machine has been up when the load begins
    uptime_ms: u32 = setting(Unit::Ms, 0, (0, 3_600_000))
        .manual("how long the machine has been up when the load begins, in ms: where the timers of \
              write-back and journals, and the spindle, stand by then", "");

    /// the same, in ns beside whole ms: how long after a tick the load begins
    uptime_ns: u32 = setting(Unit::Ns, 0, (0, 999_999_999))
        .manual("so many ns more: how long after a tick of the kernel the load begins", "");

    /// MiB of another process's file that are written when the machine starts
    dirty_at_start_mb: u32 = setting(Unit::MiB, 0, (0, 1 << 20))
        .manual("MiB of another process's file that are written, and not synced, when the machine \
              starts", "");

    /// all processor times, in percent of those of a 2.4 GHz machine of 2008
    cpu_cost_percent: u32 = setting(Unit::Percent, 100, (1, 100_000))
        .manual("factor on all these times and on copying, percent", "");

    /// processors; with one, tasks compete for it (to 4.20: kernel threads only)
    cpus: u32 = setting(Unit::Count, 2, (1, 4096)).taken_at(Place::Boot("nr_cpus"))
        .manual("processors. With 1, from 5.0 on, tasks take turns on it; up to 4.20 kernel threads \
              wait for a task that computes. With more no task waits for a processor; from 5.0 on \
              there are as many hardware queues, each with a software queue, as the device has, \
              at most one for each (at most 64)", "");

    /// processors that share a last-level cache: the first so many, the next so many
    llc_cpus: u32 = setting(Unit::Count, 4096, (1, 4096)).since(MULTI_QUEUE)
        .manual("processors that share a last-level cache: the first so many, the next so many, from \
              5.0 on; `rq_affinity` and the choice of a processor for a task look at it",
             "all of them");

    /// processor that the interrupts of a disk on one line come to
    irq_cpu: u32 = setting(Unit::Count, 0, (0, 63)).since(MULTI_QUEUE)
        .manual("processor that the interrupts of a SCSI or SATA disk come to \
              (`/proc/irq/N/smp_affinity`), from 5.0 on. NVMe and virtio have an interrupt for \
              each hardware queue, which the kernel gives to the first of the queue's processors; \
              `null_blk`, `scsi_debug` and `simdisk` have timers",
             "0");

    /// pages right behind the one before in memory, one segment with it, in percent
    adjacent_pages_percent: u32 = percent(0)
        .manual("pages that lie right behind the one before in memory and share a segment with it, \
              percent", "");
}
