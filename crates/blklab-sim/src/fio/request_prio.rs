// SPDX-License-Identifier: MIT OR Apache-2.0
//! Priorities of single requests: whether a kernel looks at them, and where they come
//! to nothing. io_uring, which is younger than `aio_reqprio`, always did.

use blklab_experiment::Experiment;
use blklab_fio::job::Job;
use blklab_fio::run::priorities;

blklab_kernel::features! {
    /// What a release does with them.
    pub(crate) struct Features {
        /// io_submit(2) takes a priority for each request.
        pub(super) request_prio: bool = false,
    }

    /// What releases changed.
    pub(crate) const CHANGES = {
        "4.18": "io_submit takes a priority for each request (aio_reqprio)", "fs/aio.c" => {
            request_prio: true,
        }
    };
}

/// Says where priorities of requests come to nothing.
pub(super) fn note(e: &Experiment, jobs: &[Job]) -> Option<String> {
    let asks = |job: &&Job| !priorities(&job.settings.cmdprio).is_empty();
    let mut asking = jobs.iter().filter(asks).peekable();
    asking.peek()?;
    if !Features::of(e.kernel).request_prio {
        return Some(format!(
            "cmdprio: kernel {} does not look at the priorities of single requests, which came \
             with {}",
            e.kernel, CHANGES[0].release
        ));
    }
    let buffered = asking.any(|job| !job.settings.direct);
    buffered.then(|| "cmdprio: priorities of buffered requests do not reach the disk".to_owned())
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
