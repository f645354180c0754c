// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the fair scheduler of tasks does by release.

blklab_kernel::features! {
    /// The fair scheduler of a release.
    pub(crate) struct Features {
        /// It goes by virtual deadlines ([`super::eevdf`]); before, whoever had least of
        /// the processor is next ([`super::cfs`]).
        pub(super) deadlines: bool = false,
        /// A task that had too much goes on competing in its sleep.
        pub(super) delays: bool = false,
        /// A slice, where there are deadlines.
        pub(super) slice_ns: u64 = 750_000,
        /// Who is in the kernel gives way at a tick if at all, otherwise when it goes back
        /// to its program (`PREEMPT_LAZY`). Before, wherever it may sleep
        /// (`PREEMPT_VOLUNTARY`).
        pub(super) lazy: bool = false,
        /// A task that wakes up while somebody else has its processor tries the one before,
        /// whether it was woken there or not.
        pub(crate) tries_last_cpu: bool = false,
        /// Slices end on time, not at the next tick (`HRTICK`).
        pub(super) ends_on_time: bool = false,
    }

    /// What releases changed.
    pub(crate) const CHANGES = {
        "6.1": "a task that wakes up and finds its processor taken tries the one that it had before (as in 6.1.176)",
            "kernel/sched/fair.c" => {
            tries_last_cpu: true,
        }
        "6.6": "the earliest virtual deadline is next, not who had least",
            "kernel/sched/fair.c" => {
            deadlines: true,
        }
        "6.12": "a task that had too much goes on competing in its sleep", "kernel/sched/fair.c" => {
            delays: true,
        }
        "6.15": "slices of 700 us instead of 750", "kernel/sched/fair.c" => {
            slice_ns: 700_000,
        }
        "7.0": "kernels preempt lazily: who is in the kernel gives way when it leaves it, or at a tick",
            "kernel/Kconfig.preempt, kernel/sched/core.c" => {
            lazy: true,
        }
        "7.1": "slices end on time, not at the next tick (as in 7.3.4)", "kernel/sched/features.h" => {
            ends_on_time: true,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::v2_6(16)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
