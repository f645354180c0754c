// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that submits without waiting (io_submit, io_uring) waits in submission all the same:
//! before the kernel can submit its I/O it has to read where that lies, or reads it for it.
//!
//! Only the stack says so: the read is in a call that is taken not to wait.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::Section;
use crate::findings::stacks::{names, short, submitter};
use crate::findings::sums::is_most;
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Whole, time_text,
};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "submit-reads",
    what: "a process that submits without waiting waits in submission, for a read of metadata or through the page cache",
    rule: Rule {
        condition: "the stack of a read's Q is in io_submit or io_uring, it is not direct I/O that \
                    submits it, and its process queues nothing until it ends",
        threshold: "3 reads or more; 20 % of its process's waiting or more",
        exception: "",
    },
    explains: &[],
    remedies: &[DIRECT, WARM],
    rests_on_absence: false,
    detector: || Box::new(SubmitReads::default()),
};

const DIRECT: Remedy = Remedy::outside(
    "direct-io",
    Outside::Applications,
    "O_DIRECT: through the page cache io_submit waits for each read",
);

const WARM: Remedy = Remedy::outside(
    "metadata-in-memory",
    Outside::Applications,
    "files in fewer extents (fallocate, larger writes), read once before they are needed, so that \
     what says where their blocks are is in memory; io_uring, which leaves what would wait to a \
     thread",
);

/// Reads, so that it is no chance.
const TIMES_MIN: u64 = 3;

/// io_submit and io_uring by the names of their functions.
const AIO: [&str; 3] = ["io_submit_one", "__io_submit_one", "__x64_sys_io_submit"];
const URING: [&str; 2] = ["io_submit_sqes", "io_submit_sqe"];

/// Threads that wait in place of the caller.
const WORKERS: [&str; 2] = ["io_wq_", "io_worker"];

/// How the names of functions that submit direct I/O are told.
const DIRECT_IO: [&str; 3] = ["direct_IO", "dio", "direct_io"];

/// How those of the page cache are.
const PAGE_CACHE: [&str; 4] = [
    "filemap_",
    "page_cache_",
    "generic_file_read",
    "do_generic_file",
];

#[derive(Debug, Default)]
struct SubmitReads {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// Of the reads those of metadata.
    metadata: u64,
    /// Those that are marked as read ahead.
    ahead: u64,
    /// The way in of the longest.
    worst: Option<(u64, String)>,
}

/// Whether a stack is in a call that is taken not to wait, and does. io_uring begins reads through
/// the page cache, and leaves the rest to a thread (fs/io_uring.c, 5.9).
fn waits_in_call(stack: &str) -> bool {
    let is_worker = |name: &str| WORKERS.iter().any(|w| name.starts_with(w));
    let is_aio = names(stack).any(|name| AIO.contains(&name));
    let is_uring = names(stack).any(|name| URING.contains(&name));
    is_aio || (is_uring && !is_cached(stack) && !names(stack).any(is_worker))
}

/// Whether it is the process's own I/O, which nobody waits for.
fn is_direct(stack: &str) -> bool {
    submitter(stack).is_some_and(|name| DIRECT_IO.iter().any(|part| name.contains(part)))
}

fn is_cached(stack: &str) -> bool {
    names(stack).any(|name| PAGE_CACHE.iter().any(|part| name.contains(part)))
}

/// When each process queues something, in order.
fn queued(disk: &Disk) -> BTreeMap<Pid, Vec<Time>> {
    let mut all: BTreeMap<Pid, Vec<Time>> = BTreeMap::new();
    for r in &disk.requests {
        for time in [r.queue, r.last_queue].into_iter().flatten() {
            all.entry(r.pid).or_default().push(time);
        }
    }
    all.values_mut().for_each(|times| times.sort_unstable());
    all
}

impl Detector for SubmitReads {
    fn section(&mut self, section: &Section, _: &Context) {
        if !section.has_stacks() {
            return;
        }
        for disk in &section.disks {
            let queued = queued(disk);
            for r in disk.requests.iter().filter(|r| r.is_read()) {
                self.read(section, disk.dev, r, &queued);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl SubmitReads {
    fn read(
        &mut self,
        section: &Section,
        dev: Dev,
        r: &Request,
        queued: &BTreeMap<Pid, Vec<Time>>,
    ) {
        let (Some(queue), Some(end)) = (r.queue, r.life.complete) else {
            return;
        };
        let Some(stack) = section.stack_of(r).filter(|s| waits_in_call(s)) else {
            return;
        };
        if is_direct(stack) {
            return;
        }
        let own = queued.get(&r.pid).map_or(&[][..], Vec::as_slice);
        let last = r.last_queue.unwrap_or(queue);
        let next = own.get(own.partition_point(|t| *t <= last));
        if next.is_some_and(|next| *next < end) {
            return;
        }
        let ns = end.since(queue).0;
        let sum = self.disks.entry(dev).or_default();
        sum.metadata += u64::from(!is_cached(stack));
        sum.ahead += u64::from(r.flags.has(Rwbs::AHEAD));
        if sum.worst.as_ref().is_none_or(|(worst, _)| ns > *worst) {
            sum.worst = Some((ns, short(stack)));
        }
        sum.harm.add(r.pid, ns, || section.instance(r, Some(ns)));
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let nr = self.harm.count();
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        if self.harm.count() < TIMES_MIN {
            return None;
        }
        let is_metadata = is_most(self.metadata, nr);
        f.of = "reads";
        f.what = format!(
            "{} wait{} {} on average in submission, for reads {}: io_submit and io_uring are \
             taken not to wait.",
            f.victim_names(),
            f.verb_end(),
            time_text(self.harm.total_ns() / self.harm.count().max(1)),
            if is_metadata {
                "of metadata, without which the filesystem does not know where their I/O goes"
            } else {
                "through the page cache"
            }
        );
        let (_, way) = self.worst?;
        f.how = format!("The stack of the longest: {way}.");
        if is_most(self.ahead, nr) {
            f.doubt(
                Confidence::Likely,
                "sched_switch: that they are waited for, although they are marked as read ahead, is \
                 told by what their process queues next",
            );
        }
        f.remedies = if is_metadata {
            vec![WARM]
        } else {
            vec![DIRECT]
        };
        Some(f)
    }
}
