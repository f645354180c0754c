// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processor times of the machine.

use crate::{Experiment, Workload};
use blklab_types::{COPY_BYTES_PER_S, Span};

/// A request without a scheduler, where one process keeps one core busy (Samsung 980 PRO,
/// Linux 6.3.8, random reads of 4 KiB, 128 in flight: 381,090 per second, ICPE 2024,
/// figure 7), less 1 us in fio.
const REQUEST_NS: u32 = 1620;

impl Experiment {
    /// A processor time in ns, on this machine.
    fn cost(&self, ns: u32) -> Span {
        self.cpu_time(Span(u64::from(ns)))
    }

    /// Processor time of one I/O in fio and its system call: 1 us if not set, and
    /// never nothing, so that time goes on.
    pub fn io_cost(&self) -> Span {
        self.cost(self.vm.io_cost_ns(self.kernel)).max(Span(1))
    }

    /// Time of a wake-up and context switch, where tasks share a processor: 2 us
    /// if not set.
    pub fn switch_cost(&self) -> Span {
        self.cost(self.vm.switch_cost_ns(self.kernel))
    }

    /// Processor time of an interrupt of the device, where tasks share a
    /// processor: none if not set.
    pub fn interrupt_cost(&self) -> Span {
        self.cost(self.vm.interrupt_cost_ns(self.kernel))
    }

    /// Processor time of waking a task that sleeps, where tasks share a processor:
    /// none if not set.
    pub fn wake_cost(&self) -> Span {
        self.cost(self.vm.wake_cost_ns(self.kernel))
    }

    /// From a wake-up until the task runs, where there are several processors: no time if
    /// not set.
    pub fn wake_up_time(&self) -> Span {
        self.cost(self.vm.wake_up_ns(self.kernel))
    }

    /// What a wake-up by another processor takes more.
    pub fn remote_wake_time(&self) -> Span {
        self.cost(self.vm.remote_wake_ns(self.kernel))
    }

    /// Processor time of a request that a task brings to the scheduler, where tasks
    /// share a processor: none if not set.
    pub fn insert_cost(&self) -> Span {
        self.cost(self.vm.insert_cost_ns(self.kernel))
    }

    /// Processor time of a run of kblockd beside its requests, where tasks share a
    /// processor: none if not set.
    pub fn worker_cost(&self) -> Span {
        self.cost(self.vm.worker_cost_ns(self.kernel))
    }

    /// From one request that kblockd hands over in a run to the next: none if not set.
    pub fn hand_over_gap(&self) -> Span {
        self.cost(self.vm.hand_over_gap_ns(self.kernel))
    }

    /// From the end of a command in the device until the kernel knows of it: nothing if not
    /// set.
    pub fn interrupt_latency(&self) -> Span {
        self.cost(self.vm.interrupt_latency_ns(self.kernel))
    }

    /// Processor time of a request from the scheduler to the driver, where tasks
    /// share a processor: none if not set.
    pub fn dispatch_cost(&self) -> Span {
        self.cost(self.vm.dispatch_cost_ns(self.kernel))
    }

    /// Whether requests take the times of the machine that was measured, where nothing
    /// else is set: not up to 4.20. Where a trace is run again, what the recorded kernel took
    /// lies in the times at which bios come.
    fn has_processor_time(&self) -> bool {
        let is_in_times = matches!(self.workload, Workload::Trace(_));
        let usual = !is_in_times && self.vm.processor_time(self.kernel);
        !self.kernel.has_single_queue() && self.vm.processor_time.unwrap_or(usual)
    }

    /// Processor time of a request in the block layer and the driver, without that of
    /// the scheduler.
    pub fn request_cost(&self) -> Span {
        let measured = || {
            if self.has_processor_time() {
                REQUEST_NS
            } else {
                0
            }
        };
        self.cost(self.vm.request_cost_ns.unwrap_or_else(measured))
    }

    /// Processor time of a request that the scheduler adds, where nobody else wants its
    /// lock; `own_ns` is what that of the experiment takes of itself
    /// ([`crate::SchedulerChoice::cost_ns`]).
    pub fn sched_cost(&self, own_ns: u32) -> Span {
        let measured = || {
            if self.has_processor_time() { own_ns } else { 0 }
        };
        self.cost(self.vm.sched_cost_ns.unwrap_or_else(measured))
    }

    /// What a turn with the scheduler's lock takes more after one of another processor.
    pub fn lock_transfer(&self) -> Span {
        self.cost(self.vm.lock_transfer_ns(self.kernel))
    }

    /// Processors of the machine.
    pub fn nr_cpus(&self) -> u32 {
        self.vm.cpus(self.kernel)
    }

    /// Processor time of a page that the driver copies, where tasks share a
    /// processor: none if not set or the device does not keep data in memory.
    pub fn driver_copy(&self) -> Span {
        let is_on = |(name, value): &(String, String)| {
            name == "memory_backed" && !matches!(value.as_str(), "0" | "off" | "false" | "no")
        };
        if self.device.params.iter().any(is_on) {
            self.cost(self.vm.driver_copy_ns(self.kernel))
        } else {
            Span::ZERO
        }
    }

    /// Processor time of a page that is written from the page cache to the disk:
    /// none if not set.
    pub fn writeout_cost(&self) -> Span {
        self.cost(self.vm.writeout_cost_ns(self.kernel))
    }

    /// Processor time of one direct I/O in its system call, which counts as
    /// its latency: none if not set.
    pub fn call_cost(&self) -> Span {
        self.cost(self.vm.call_cost_ns(self.kernel))
    }

    /// Processor time of each page of a direct I/O but the first, in its system
    /// call: none if not set.
    pub fn direct_page_cost(&self) -> Span {
        self.cost(self.vm.direct_page_cost_ns(self.kernel))
    }

    /// Processor time of one completion of an asynchronous I/O: none if not set.
    pub fn reap_cost(&self) -> Span {
        self.cost(self.vm.reap_cost_ns(self.kernel))
    }

    /// From the start of the machine to that of its load: none if not set.
    pub fn uptime(&self) -> Span {
        let whole = Span::from_us(u64::from(self.vm.uptime_ms(self.kernel)) * 1000);
        Span(whole.ns() + u64::from(self.vm.uptime_ns(self.kernel)))
    }

    /// What somebody else writes when the machine starts: nothing if not set.
    pub fn dirty_at_start_bytes(&self) -> u64 {
        u64::from(self.vm.dirty_at_start_mb(self.kernel)) << 20
    }

    /// Processor time of a fio job from its release to its first I/O: none if not
    /// set.
    pub fn job_start(&self) -> Span {
        self.cost(self.vm.job_start_ns(self.kernel))
    }

    /// The same for each I/O that the job may have in flight: none if not set.
    pub fn io_u_setup(&self) -> Span {
        self.cost(self.vm.io_u_setup_ns(self.kernel))
    }

    /// The same for each page of the buffers of those: none if not set.
    pub fn buffer_page(&self) -> Span {
        self.cost(self.vm.buffer_page_ns(self.kernel))
    }

    /// What a fio job takes longer for its second I/O, and for the first that has
    /// ended: nothing if not set.
    pub fn first_call(&self) -> Span {
        self.cost(self.vm.first_call_ns(self.kernel))
    }

    /// What a fio job has had of the processor when it begins: nothing if not set.
    pub fn job_setup(&self) -> Span {
        self.cost(self.vm.job_setup_ns(self.kernel))
    }

    /// Processor time of fio's main process whenever it looks after its jobs: none
    /// if not set.
    pub fn look_cost(&self) -> Span {
        self.cost(self.vm.look_cost_ns(self.kernel))
    }

    /// The same as long as jobs wait to be started: none if not set.
    pub fn start_look_cost(&self) -> Span {
        self.cost(self.vm.start_look_cost_ns(self.kernel))
    }

    /// Speed of copying on this machine, from that on one of 2.4 GHz in 2008.
    pub fn copy_bytes_per_s(&self) -> u64 {
        let percent = u128::from(self.vm.cpu_cost_percent(self.kernel));
        let scaled = u128::from(COPY_BYTES_PER_S) * 100 / percent.max(1);
        u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
    }

    /// Time to copy so many bytes on this machine.
    pub fn copy_time(&self, bytes: u64) -> Span {
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.copy_bytes_per_s());
        Span(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// A processor time on this machine, from that on one of 2.4 GHz in 2008.
    pub fn cpu_time(&self, time: Span) -> Span {
        let percent = u128::from(self.vm.cpu_cost_percent(self.kernel));
        let scaled = u128::from(time.ns()) * percent / 100;
        Span(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Processor time of a page that is read or written through the page cache,
    /// beside its copying: 1 us if not set.
    pub fn page_cost(&self) -> Span {
        self.cost(self.vm.page_cost_ns(self.kernel))
    }

    /// The same of each page of a write but its first: as of that if not set.
    pub fn further_page_cost(&self) -> Span {
        match self.vm.further_page_cost_ns {
            Some(ns) => self.cost(ns),
            None => self.page_cost(),
        }
    }

    /// Whether the machine has one processor: kernel threads then wait while a
    /// task computes.
    pub fn one_cpu(&self) -> bool {
        self.vm.cpus == Some(1)
    }

    /// Whether several processors run one at a time.
    pub fn has_turns(&self) -> bool {
        !self.one_cpu() && self.vm.cpu_turns(self.kernel)
    }
}
