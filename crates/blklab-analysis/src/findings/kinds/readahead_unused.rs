// SPDX-License-Identifier: MIT OR Apache-2.0
//! Far more is read ahead than short runs of reads can use.
//!
//! Read-ahead takes a reader that has read a little in order for a sequential one, and doubles
//! its window up to read_ahead_kb. A reader that goes elsewhere soon has not used the last
//! window. Which pages were used is no event; that the reader does not go on behind them is.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::Section;
use crate::findings::sums::percent;
use crate::findings::{Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Whole, counted};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "readahead-unused",
    what: "more is read ahead than short runs of reads can use",
    rule: Rule {
        condition: "a process reads through the page cache in runs, and where it goes elsewhere \
                    the last thing that it has read ahead is large; old kernels do not mark what \
                    is read ahead (A): where nothing is marked, a run counts whose requests double \
                    their length twice or more and whose last one is no shorter than the one \
                    before",
        threshold: "read_ahead_kb is known to be more than 128; 8 runs or more, whose last \
                    requests have 64 KiB on average or more and half of all that is read",
        exception: "",
    },
    explains: &[
        "reads-behind-writes",
        "behind-other",
        "deep-queue",
        "seek-storm",
    ],
    remedies: &[LESS_AHEAD, RANDOM],
    rests_on_absence: false,
    detector: || Box::new(ReadaheadUnused::default()),
};

const LESS_AHEAD: Remedy = Remedy::set(
    "less-read-ahead",
    "queue/read_ahead_kb",
    "",
    "runs end before as much is read in vain; long streams get less, too",
);

const RANDOM: Remedy = Remedy::outside(
    "advise-random",
    Outside::Applications,
    "POSIX_FADV_RANDOM (MADV_RANDOM) for files that are read in short runs",
);

/// What kernels have by default, KiB.
const USUAL_KB: u64 = 128;
/// Runs, so that it is no chance.
const RUNS_MIN: u64 = 8;
/// A run that grows so often is one of read-ahead.
const DOUBLINGS_MIN: u64 = 2;
/// The last request of a run on average, sectors.
const LAST_SECTORS_MIN: u64 = 128;
/// Of all that is read the part that is the last of a run, in per cent.
const PERCENT_MIN: u64 = 50;

#[derive(Debug, Default)]
struct ReadaheadUnused {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// Sectors that are read, and those of the last requests of runs.
    read: u64,
    last: u64,
}

/// Reads of a process, each of which begins where the one before it ends.
#[derive(Clone, Copy)]
struct Run<'a> {
    last: &'a Request,
    /// How often one has twice the length of the one before or more.
    doublings: u64,
    /// Whether the last one is shorter than the one before it.
    is_shorter: bool,
}

impl<'a> Run<'a> {
    fn new(first: &'a Request) -> Run<'a> {
        Run {
            last: first,
            doublings: 0,
            is_shorter: false,
        }
    }

    /// Takes a read if it belongs to the run, or is its first one.
    fn goes_on(&mut self, r: &'a Request) -> bool {
        if self.last.life.number == r.life.number {
            return true;
        }
        if self.last.end() != r.life.sector {
            return false;
        }
        self.doublings += u64::from(r.sectors() >= 2 * self.last.sectors());
        self.is_shorter = r.sectors() < self.last.sectors();
        self.last = r;
        true
    }

    /// Whether its reads grow as windows of read-ahead do, up to the last one: a reader reads what
    /// it needs in one length.
    fn grows_like_windows(&self) -> bool {
        self.doublings >= DOUBLINGS_MIN && !self.is_shorter
    }
}

impl Detector for ReadaheadUnused {
    fn section(&mut self, section: &Section, context: &Context) {
        if context
            .queue("read_ahead_kb")
            .is_none_or(|kb| kb <= USUAL_KB)
        {
            return;
        }
        for disk in &section.disks {
            self.disk(section, disk);
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl ReadaheadUnused {
    fn disk(&mut self, section: &Section, disk: &Disk) {
        let is_cached = |r: &&Request| r.is_read() && !r.flags.has(Rwbs::SYNC) && r.life.bytes > 0;
        let is_marked = disk.shown.flags.has(Rwbs::AHEAD);
        let mut before: BTreeMap<Pid, Run<'_>> = BTreeMap::new();
        let mut reads: Vec<&Request> = disk.issued().iter().filter(is_cached).collect();
        reads.sort_by_key(|r| (r.start(), r.life.number));
        for r in reads {
            let sum = self.disks.entry(disk.dev).or_default();
            sum.read += r.sectors();
            let run = before.entry(r.pid).or_insert(Run::new(r));
            if run.goes_on(r) {
                continue;
            }
            let Run { last, .. } = *run;
            let is_ahead = last.flags.has(Rwbs::AHEAD) || (!is_marked && run.grows_like_windows());
            *run = Run::new(r);
            if !is_ahead {
                continue;
            }
            sum.last += last.sectors();
            let took = last.d2c().unwrap_or(0);
            sum.harm
                .add(r.pid, took, || section.instance(last, Some(took)));
        }
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let runs = self.harm.count();
        let part = percent(self.last, self.read);
        let mean = self.last / runs.max(1);
        if runs < RUNS_MIN || mean < LAST_SECTORS_MIN || part < PERCENT_MIN {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "runs";
        f.what = format!(
            "{part} % of what is read is the end of {} of {}, which then reads elsewhere: {} KiB \
             each on average.",
            counted(runs, "runs"),
            f.victim_names(),
            mean / 2
        );
        let kb = whole.context.queue("read_ahead_kb").unwrap_or(0);
        f.cause = Some(format!("read_ahead_kb = {kb}"));
        f.how = format!(
            "Read-ahead doubles its window up to {kb} KiB while a reader goes on in order; what it \
             has read when the reader goes elsewhere was read in vain."
        );
        f.doubt(
            Confidence::Possible,
            "which pages were used: files that are read whole end like this, too",
        );
        f.remedies = vec![LESS_AHEAD.to(USUAL_KB), RANDOM];
        f.figures = vec![
            ("read", (self.read / 2) as f64, "KiB"),
            ("of it the ends of runs", (self.last / 2) as f64, "KiB"),
        ];
        Some(f)
    }
}
