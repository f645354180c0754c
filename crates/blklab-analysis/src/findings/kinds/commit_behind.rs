// SPDX-License-Identifier: MIT OR Apache-2.0
//! fsync waits for commits whose writes wait behind others' requests: the journal is not slow, and
//! neither are flushes; the device is busy with somebody else's.

use super::chain_waits::{Waited, waiters};
use super::chains::{self, Writers, chains, shows_flushes};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside, Serving};
use crate::findings::section::Section;
use crate::findings::sums::{add, is_most, percent, total};
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Whole, time_text,
};
use blklab_types::{Dev, Pid};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "commit-behind",
    what: "fsync waits for journal commits whose writes wait behind others' requests",
    rule: Rule {
        condition: "a process waits for a commit of the journal (as in flush), and its \
                    writes wait in the queue or at the device while others have most of the work \
                    there: most of the commit's time, and longer than flushes take, or a fifth of \
                    it, without which it would take less than 1 ms; or the flush takes 5 ms \
                    or more, or twice as long as otherwise, and three quarters of what was written since the last one, 1 MiB at \
                    least, are another's; or the journal's thread itself writes 1 MiB or more elsewhere before \
                    its own blocks, which are data of files (data=ordered)",
        threshold: "1 ms or more of a wait on average, and 20 % of the process's waiting or more",
        exception: "",
    },
    explains: &[
        "behind-other",
        "writes-starved",
        "journal-chain",
        "deep-queue",
        "flush",
        "no-request-free",
    ],
    remedies: &[LIMIT, LESS_WRITE_BACK, SHARE],
    rests_on_absence: false,
    detector: || Box::new(CommitBehind::default()),
};

const LIMIT: Remedy = Remedy::outside(
    "limit-the-other",
    Outside::Machine,
    "a limit for whoever keeps the device busy (io.max of its group, rate= of a job, ionice -c idle \
     with a scheduler that knows it), or another time for it",
);

const LESS_WRITE_BACK: Remedy = Remedy::outside(
    "smaller-write-back",
    Outside::Machine,
    "less write-back at a time, if it is that: a smaller vm.dirty_background_bytes, a lower \
     queue/wbt_lat_usec",
);

const SHARE: Remedy = Remedy::act(
    "share-by-process",
    Act::Scheduler(Serving::ByProcess),
    "a scheduler that shares the device by process (bfq), other ioprio or io.weight",
);

/// Waits that are shorter are no harm.
const SLOW_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
struct CommitBehind {
    writers: Writers,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    others_ns: u64,
    /// Of that, while the device empties its cache of what they have written.
    filled_ns: u64,
    /// Of that, while the journal's thread writes the data of others.
    data_ns: u64,
    /// All waits for commits.
    all_ns: u64,
    /// The longest together with the write before it.
    longest_sync_ns: u64,
    /// Whose commits they are.
    journals: BTreeSet<Pid>,
}

impl Detector for CommitBehind {
    fn process(&mut self, pid: Pid, comm: &str) {
        self.writers.named(pid, comm);
    }

    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            if !shows_flushes(disk) {
                continue;
            }
            let chains = chains(disk, &self.writers);
            for (pid, waited) in waiters(disk, &chains, &self.writers) {
                let sum = self.disks.entry(disk.dev).or_default();
                add(&mut sum.all_ns, total(waited.iter().map(|w| w.ns)));
                let behind =
                    |w: &&Waited| w.chain.is_behind_others(w.ns) && w.chain.culprit != Some(pid);
                for w in waited.iter().filter(behind) {
                    let (chain, ns) = (&w.chain, w.ns);
                    add(&mut sum.others_ns, chain.others_ns.min(ns));
                    add(&mut sum.filled_ns, chain.filled_ns.min(ns));
                    add(&mut sum.data_ns, chain.data_ns.min(ns));
                    sum.journals.insert(chain.pid);
                    sum.longest_sync_ns = sum.longest_sync_ns.max(w.with_write_ns);
                    if let Some(culprit) = chain.culprit {
                        sum.harm.blame(culprit, chain.others_ns);
                    }
                    sum.harm
                        .add(pid, ns, || chains::instance(section, disk, chain, ns));
                }
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |mut sum, dev| {
            if sum.harm.total_ns() / sum.harm.count().max(1) < SLOW_NS {
                return None;
            }
            let mut f = sum.harm.finding(&KIND, dev, whole)?;
            f.of = "waits";
            f.through = sum.journals.iter().copied().collect();
            // Who has a small part of the blame is no cause: most of it says who is.
            let blamed: Vec<_> = f.causes.iter().map(|p| p.requests).collect();
            let most = blamed.iter().copied().max().unwrap_or(0);
            f.causes.retain(|p| p.requests.saturating_mul(4) >= most);
            for cause in &mut f.causes {
                cause.requests = sum.harm.count();
                // What a journal's thread is to blame for are others' data.
                if sum.journals.contains(&cause.pid) {
                    let writers = whole.context.buffered_writers();
                    cause.writes_for = writers.map(str::to_owned);
                }
            }
            let waited_ns = sum.harm.total_ns();
            f.what = format!(
                "{} wait{} {} on average for commits of the journal, {} % of it behind I/O of {}, \
                 which keeps the device busy.",
                f.victim_names(),
                f.verb_end(),
                time_text(waited_ns / sum.harm.count().max(1)),
                percent(sum.others_ns, waited_ns),
                f.cause_names(),
            );
            f.how = format!(
                "A commit is a chain of small writes that wait for each other, and each waits for \
                 what the device has been given before it. Waits for commits are {} in all, these \
                 are {}.",
                time_text(sum.all_ns),
                time_text(waited_ns)
            );
            if sum.longest_sync_ns > sum.harm.worst_ns() {
                f.what += &format!(
                    " With the write that it begins with, the longest fsync takes {}.",
                    time_text(sum.longest_sync_ns)
                );
            }
            if sum.filled_ns > 0 {
                f.how += &format!(
                    " {} of it the device empties its cache, in which nearly all is theirs.",
                    time_text(sum.filled_ns)
                );
                if is_most(sum.filled_ns, sum.others_ns) {
                    f.doubt(
                        Confidence::Likely,
                        "what a flush takes when others have written nothing",
                    );
                }
            }
            f.remedies = vec![LIMIT, LESS_WRITE_BACK, SHARE];
            if sum.data_ns > 0 {
                f.how += &format!(
                    " {} of it the journal's thread writes data of files, which have to be safe \
                     before the commit that makes them known (data=ordered).",
                    time_text(sum.data_ns)
                );
            }
            if is_most(sum.data_ns, sum.others_ns) {
                // It writes them whatever the scheduler does.
                f.remedies = vec![LIMIT, LESS_WRITE_BACK];
            }
            Some(f)
        })
    }
}
