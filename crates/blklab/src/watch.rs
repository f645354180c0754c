// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures about some of the bios of a run and their requests, taken from its
//! trace events: those of one direction, synchronous or not, of one process.

use blklab_analysis::lifecycle::{BioLife, LifeSink, RequestLife};
use blklab_types::{Op, Pid, SECTOR_BYTES};
use std::collections::BTreeMap;

/// Which bios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BioFilter {
    /// Direction; all if none.
    pub op: Option<Op>,
    /// With or without the sync flag (as queued); both if none. Kernels up to
    /// 2.6.16 do not show it.
    pub sync: Option<bool>,
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
    /// Of each request, for those that could have been one.
    extents: Vec<Extent>,
}

/// Times of a bio in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    queue: u64,
    issue: Option<u64>,
    complete: u64,
}

/// Place and times of a request: sectors, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    begin: u64,
    end: u64,
    insert: u64,
    issue: u64,
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

    /// How many were queued while the one that waited longest from Q to D did,
    /// itself included, and the time from its Q to that of the last in ns.
    pub fn stalled(&self) -> (u64, u64) {
        let waited = |s: &&Span| s.issue.map_or(0, |d| d - s.queue);
        let Some((first, issue)) = self
            .spans
            .iter()
            .max_by_key(waited)
            .and_then(|s| Some((s.queue, s.issue?)))
        else {
            return (0, 0);
        };
        let during = self.spans.iter().map(|s| s.queue);
        let during = during.filter(|q| (first..issue).contains(q));
        during.fold((0, 0), |(n, last), q| (n + 1, last.max(q - first)))
    }

    /// Median of the times from D to C in ns.
    pub fn d2c_median_ns(&self) -> Option<u64> {
        let times = self.spans.iter();
        let mut times: Vec<u64> = times.filter_map(|s| Some(s.complete - s.issue?)).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    /// Pairs of requests of which the second was inserted right behind the
    /// first while that waited, and not merged into it.
    pub fn missed_merges(&self) -> u64 {
        let mut by_end: BTreeMap<u64, Vec<&Extent>> = BTreeMap::new();
        for e in &self.extents {
            by_end.entry(e.end).or_default().push(e);
        }
        let missed = |e: &&Extent| {
            let before = by_end.get(&e.begin).into_iter().flatten();
            before
                .into_iter()
                .any(|b| b.insert < e.insert && e.insert < b.issue)
        };
        self.extents.iter().filter(missed).count() as u64
    }
}

/// Collects the figures of some bios.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    filter: BioFilter,
    /// Processes of the wanted name.
    pids: Vec<Pid>,
    /// The request of the wanted bio seen last.
    request: Option<u64>,
    /// The result.
    pub figures: BioFigures,
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
    pub(crate) fn process(&mut self, pid: Pid, comm: &str) {
        self.pids.retain(|p| *p != pid);
        if self.filter.process.as_deref() == Some(comm) {
            self.pids.push(pid);
        }
    }

    fn wants(&self, bio: &BioLife) -> bool {
        let f = &self.filter;
        let sync = bio.rwbs.has(blklab_trace::Rwbs::SYNC);
        bio.bytes > 0
            && (bio.dev.major == blklab_block::md::MD0.major) == f.array
            && f.op.is_none_or(|op| bio.op() == Some(op))
            && f.sync.is_none_or(|s| s == sync)
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
        self.request = bio.request;
    }

    fn add_request(&mut self, r: &RequestLife) {
        let (Some(insert), Some(issue)) = (r.insert, r.issue) else {
            return;
        };
        if r.complete.is_none() || self.request != Some(r.number) {
            return;
        }
        let f = &mut self.figures;
        let sectors = r.bytes / SECTOR_BYTES;
        f.requests += 1;
        f.request_sectors_max = f.request_sectors_max.max(sectors);
        f.extents.push(Extent {
            begin: r.sector,
            end: r.sector + sectors,
            insert: insert.0,
            issue: issue.0,
        });
    }
}

/// Several at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches(pub(crate) Vec<Watch>);

impl LifeSink for Watches {
    fn bio(&mut self, bio: &BioLife) {
        for w in &mut self.0 {
            if w.wants(bio) {
                w.add(bio);
            }
        }
    }

    fn request(&mut self, request: &RequestLife) {
        for w in &mut self.0 {
            w.add_request(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::Rwbs;
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
        let writes = &all.0[0].figures;
        assert_eq!(
            (writes.count, writes.q2d_max_ns, writes.q2c_max_ns),
            (3, 50, 60)
        );
        assert_eq!(writes.q2d_sum_ns, 50 + 30 + 1);
        assert_eq!(writes.outstanding_max(), 2);
        // The bio of 0 waited longest; that of 10 came meanwhile.
        assert_eq!(writes.stalled(), (2, 10));
        assert_eq!(writes.d2c_median_ns(), Some(10));
        assert_eq!(
            (all.0[1].figures.count, all.0[1].figures.q2d_max_ns),
            (1, 1)
        );
    }

    #[test]
    fn a_request_behind_a_waiting_one_is_a_missed_merge() {
        let request = |number, sector, sectors: u64, insert, issue| RequestLife {
            number,
            dev: Dev { major: 8, minor: 0 },
            pid: 1,
            rwbs: Rwbs::WRITE,
            sector,
            bytes: sectors * 512,
            get: Some(Time(insert)),
            insert: Some(Time(insert)),
            issue: Some(Time(issue)),
            complete: Some(Time(issue + 5)),
            error: 0,
            nr_bios: 1,
            nr_back_merges: 0,
            nr_front_merges: 0,
            nr_absorbed: 0,
            nr_silent_merges: 0,
            nr_requeues: 0,
        };
        let mut all = Watches(vec![Watch::new(BioFilter::default())]);
        let mut done = |r: RequestLife| {
            all.bio(&BioLife {
                request: Some(r.number),
                ..bio(1, Rwbs::WRITE, 0, 1, 2)
            });
            all.request(&r);
        };
        done(request(0, 1000, 376, 10, 50));
        done(request(1, 1376, 248, 20, 55));
        // Behind one that was at the disk already.
        done(request(2, 1624, 8, 60, 70));
        let f = &all.0[0].figures;
        assert_eq!((f.requests, f.request_sectors_max), (3, 376));
        assert_eq!(f.missed_merges(), 1);
    }
}
