// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures about some of the bios of a run and their requests, taken from its
//! trace events: those of one direction, synchronous or not, of one process.

use crate::lifecycle::{BioLife, LifeSink, RequestLife};
use crate::merges::{MissedMerges, Pair};
use crate::spread::{Spread, percentile};
use crate::stalls::{Stall, Stalls};
use blklab_trace::Rwbs;
use blklab_types::{Op, Pid, SECTOR_BYTES};

/// Major number of arrays (`Documentation/admin-guide/devices.txt`).
const MD_MAJOR: u16 = 9;

/// Which bios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BioFilter {
    /// Direction; all if none.
    pub op: Option<Op>,
    /// With or without the sync flag (as queued); both if none. Kernels up to
    /// 2.6.16 do not show it.
    pub sync: Option<bool>,
    /// Their length; all if none.
    pub sectors: Option<u32>,
    /// Name of the process that queued them; all if none.
    pub process: Option<String>,
    /// Those of an array instead of those of the disks.
    pub array: bool,
}

/// What became of them. Times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BioFigures {
    /// Bios that completed.
    pub count: u64,
    /// Those of them that joined a request of others.
    pub merged: u64,
    /// Those whose process slept because no request was free.
    pub slept: u64,
    /// Longest time from Q to D.
    pub q2d_max_ns: u64,
    /// Sum of the times from Q to D.
    pub q2d_sum_ns: u128,
    /// Longest time from Q to C.
    pub q2c_max_ns: u64,
    /// Longest sleep for a request.
    pub s2g_max_ns: u64,
    /// Requests of such bios that completed.
    pub requests: u64,
    /// Sectors of the largest of them.
    pub request_sectors_max: u64,
    /// Of each bio, for what was outstanding when.
    spans: Vec<Span>,
    stalls: Vec<Stall>,
    missed_merges: Vec<Pair>,
}

/// Times of a bio in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    queue: u64,
    issue: Option<u64>,
    complete: u64,
}

impl BioFigures {
    /// Largest number between Q and C at a time.
    pub fn outstanding_max(&self) -> u64 {
        let begins = self.spans.iter().map(|s| (s.queue, 1));
        let ends = self.spans.iter().map(|s| (s.complete, -1));
        let mut steps: Vec<(u64, i64)> = begins.chain(ends).collect();
        // What ends at an instant makes room before something begins.
        steps.sort_unstable();
        let mut now = 0;
        let depths = steps.iter().map(|(_, step)| {
            now += step;
            now
        });
        depths.max().unwrap_or(0) as u64
    }

    /// Number of stalls; see [`crate::stalls`].
    pub fn nr_stalls(&self) -> u64 {
        self.stalls.len() as u64
    }

    /// The stalls with most bios: how many these are, and medians of the times
    /// from the first Q to the last and of the longest times from Q to D in ns.
    pub fn stalled(&self) -> Option<(u64, f64, f64)> {
        let most = self.stalls.iter().map(|s| s.bios).max()?;
        let median = |figure: fn(&Stall) -> u64| {
            let largest = self.stalls.iter().filter(|s| s.bios == most);
            median(largest.map(figure))
        };
        Some((most, median(|s| s.fill.0)?, median(|s| s.longest.0)?))
    }

    /// Median of the times from D to C in ns.
    pub fn d2c_median_ns(&self) -> Option<f64> {
        let times = self
            .spans
            .iter()
            .filter_map(|s| Some(s.complete - s.issue?));
        median(times)
    }

    /// The time from Q to D in ns that 99 of 100 did not exceed.
    pub fn q2d_p99_ns(&self) -> Option<u64> {
        let times = self.spans.iter().filter_map(|s| Some(s.issue? - s.queue));
        percentile(99, times.collect())
    }

    /// Median of the times between one Q and the next in ns.
    pub fn q2q_median_ns(&self) -> Option<f64> {
        let mut queued: Vec<u64> = self.spans.iter().map(|s| s.queue).collect();
        queued.sort_unstable();
        median(queued.windows(2).map(|pair| pair[1] - pair[0]))
    }

    /// Pairs of requests of which the second was inserted right behind the
    /// first while that waited, and not merged into it; see
    /// [`crate::merges`].
    pub fn missed_merges(&self) -> u64 {
        self.missed_merges.len() as u64
    }

    /// Median of the sizes of the first of such pairs in sectors.
    pub fn missed_first_sectors(&self) -> Option<f64> {
        median(self.missed_merges.iter().map(|p| p.first.sectors()))
    }

    /// The same of the second.
    pub fn missed_second_sectors(&self) -> Option<f64> {
        median(self.missed_merges.iter().map(|p| p.second.sectors()))
    }
}

/// None if there are no values.
fn median(values: impl Iterator<Item = u64>) -> Option<f64> {
    let values: Vec<f64> = values.map(|v| v as f64).collect();
    (!values.is_empty()).then(|| Spread::new(values).median)
}

/// Collects the figures of some bios.
#[derive(Debug, Default)]
pub struct Watch {
    filter: BioFilter,
    /// Processes of the wanted name.
    pids: Vec<Pid>,
    /// The request of the wanted bio seen last.
    request: Option<u64>,
    stalls: Stalls,
    missed_merges: MissedMerges,
    figures: BioFigures,
}

impl Watch {
    /// Nothing seen yet.
    pub fn new(filter: BioFilter) -> Watch {
        Watch {
            filter,
            ..Watch::default()
        }
    }

    /// A process has this name from now on.
    pub fn process(&mut self, pid: Pid, comm: &str) {
        self.pids.retain(|p| *p != pid);
        if self.filter.process.as_deref() == Some(comm) {
            self.pids.push(pid);
        }
    }

    /// The figures, when the trace has ended.
    pub fn finish(mut self) -> BioFigures {
        self.figures.stalls = self.stalls.finish().to_vec();
        self.figures.missed_merges = self.missed_merges.pairs().to_vec();
        self.figures
    }

    fn wants(&self, bio: &BioLife) -> bool {
        let f = &self.filter;
        let sync = bio.rwbs.has(Rwbs::SYNC);
        bio.bytes > 0
            && (bio.dev.major == MD_MAJOR) == f.array
            && f.op.is_none_or(|op| bio.op() == Some(op))
            && f.sync.is_none_or(|s| s == sync)
            && f.sectors
                .is_none_or(|n| u64::from(n) * SECTOR_BYTES == u64::from(bio.bytes))
            && (f.process.is_none() || self.pids.contains(&bio.pid))
    }

    fn add(&mut self, bio: &BioLife) {
        let Some(complete) = bio.complete else { return };
        let f = &mut self.figures;
        f.count += 1;
        f.merged += u64::from(bio.merge.is_some());
        f.slept += u64::from(bio.sleep.is_some());
        f.q2c_max_ns = f.q2c_max_ns.max(complete.since(bio.queue).0);
        if let Some(issue) = bio.issue {
            let q2d = issue.since(bio.queue).0;
            f.q2d_max_ns = f.q2d_max_ns.max(q2d);
            f.q2d_sum_ns += u128::from(q2d);
        }
        if let (Some(sleep), Some(get)) = (bio.sleep, bio.get) {
            f.s2g_max_ns = f.s2g_max_ns.max(get.since(sleep).0);
        }
        f.spans.push(Span {
            queue: bio.queue.0,
            issue: bio.issue.map(|d| d.0),
            complete: complete.0,
        });
        self.stalls.add(bio);
        self.request = bio.request;
    }

    fn add_request(&mut self, r: &RequestLife) {
        let is_whole = r.insert.is_some() && r.issue.is_some() && r.complete.is_some();
        if !is_whole || self.request != Some(r.number) {
            return;
        }
        let f = &mut self.figures;
        let sectors = r.bytes / SECTOR_BYTES;
        f.requests += 1;
        f.request_sectors_max = f.request_sectors_max.max(sectors);
        self.missed_merges.add(r);
    }
}

/// Several at once.
#[derive(Debug, Default)]
pub struct Watches(pub Vec<Watch>);

impl LifeSink for Watches {
    #[inline]
    fn bio(&mut self, bio: &BioLife) {
        for w in &mut self.0 {
            if w.wants(bio) {
                w.add(bio);
            }
        }
    }

    #[inline]
    fn request(&mut self, request: &RequestLife) {
        for w in &mut self.0 {
            w.add_request(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::{Dev, Time};

    fn bio(pid: u32, rwbs: Rwbs, q: u64, d: u64, c: u64) -> BioLife {
        BioLife {
            dev: Dev { major: 8, minor: 0 },
            pid,
            rwbs,
            sector: 0,
            bytes: 4096,
            queue: Time(q),
            sleep: None,
            get: Some(Time(q)),
            merge: None,
            insert: None,
            issue: Some(Time(d)),
            complete: Some(Time(c)),
            error: 0,
            is_part: false,
            request: None,
        }
    }

    #[test]
    fn bios_are_filtered_and_counted() {
        let mut all = Watches(vec![
            Watch::new(BioFilter {
                op: Some(Op::Write),
                sync: Some(true),
                ..BioFilter::default()
            }),
            Watch::new(BioFilter {
                process: Some("cat".to_owned()),
                ..BioFilter::default()
            }),
        ]);
        for w in &mut all.0 {
            w.process(7, "cat");
        }
        let sync = Rwbs::WRITE.with(Rwbs::SYNC);
        all.bio(&bio(1, sync, 0, 50, 60));
        all.bio(&bio(1, sync, 10, 40, 70));
        all.bio(&bio(1, sync, 70, 71, 80));
        all.bio(&bio(1, Rwbs::WRITE, 0, 500, 600));
        all.bio(&bio(7, Rwbs::READ, 5, 6, 7));
        let [writes, of_cat] = all.0.try_into().expect("two");
        let (writes, of_cat) = (writes.finish(), of_cat.finish());
        assert_eq!(
            (writes.count, writes.q2d_max_ns, writes.q2c_max_ns),
            (3, 50, 60)
        );
        assert_eq!(writes.q2d_sum_ns, 50 + 30 + 1);
        assert_eq!(writes.outstanding_max(), 2);
        assert_eq!((writes.nr_stalls(), writes.stalled()), (0, None));
        assert_eq!(writes.d2c_median_ns(), Some(10.0));
        assert_eq!((of_cat.count, of_cat.q2d_max_ns), (1, 1));
    }
}
