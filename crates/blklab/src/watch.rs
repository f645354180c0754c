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

/// A wait of this length from Q to D is a stall.
pub const STALL_NS: u64 = 300_000_000;

/// A time in which a bio waited, and others behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stall {
    begin: u64,
    bios: u64,
    fill_ns: u64,
    longest_ns: u64,
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

    /// Stalls: a bio waits for [`STALL_NS`] or more from Q to D. What is
    /// queued meanwhile belongs to it.
    fn stalls(&self) -> Vec<Stall> {
        let mut spans = self.spans.clone();
        spans.sort_unstable_by_key(|s| s.queue);
        let mut stalls: Vec<Stall> = Vec::new();
        let mut end = 0;
        for s in &spans {
            let waited = s.issue.map_or(0, |d| d - s.queue);
            if let Some(stall) = stalls.last_mut()
                && s.queue < end
            {
                stall.bios += 1;
                stall.fill_ns = s.queue - stall.begin;
                stall.longest_ns = stall.longest_ns.max(waited);
            } else if waited >= STALL_NS {
                end = s.queue + waited;
                stalls.push(Stall {
                    begin: s.queue,
                    bios: 1,
                    fill_ns: 0,
                    longest_ns: waited,
                });
            }
        }
        stalls
    }

    /// Number of stalls.
    pub fn nr_stalls(&self) -> u64 {
        self.stalls().len() as u64
    }

    /// The stalls with most bios: how many these are, and medians of the times
    /// from the first Q to the last and of the longest times from Q to D in ns.
    pub fn stalled(&self) -> Option<(u64, u64, u64)> {
        let mut stalls = self.stalls();
        let most = stalls.iter().map(|s| s.bios).max()?;
        stalls.retain(|s| s.bios == most);
        let of = |figure: fn(&Stall) -> u64| median(stalls.iter().map(figure).collect());
        Some((most, of(|s| s.fill_ns)?, of(|s| s.longest_ns)?))
    }

    /// Median of the times from D to C in ns.
    pub fn d2c_median_ns(&self) -> Option<u64> {
        self.time_percentile(50, |s| Some(s.complete - s.issue?))
    }

    /// The time from Q to D in ns that 99 of 100 did not exceed.
    pub fn q2d_p99_ns(&self) -> Option<u64> {
        self.time_percentile(99, |s| Some(s.issue? - s.queue))
    }

    fn time_percentile(&self, percent: usize, time: impl Fn(&Span) -> Option<u64>) -> Option<u64> {
        percentile(percent, self.spans.iter().filter_map(time).collect())
    }

    /// Median of the times between one Q and the next in ns.
    pub fn q2q_median_ns(&self) -> Option<u64> {
        let mut queued: Vec<u64> = self.spans.iter().map(|s| s.queue).collect();
        queued.sort_unstable();
        let gaps = queued.windows(2).map(|pair| pair[1] - pair[0]);
        median(gaps.collect())
    }

    /// Pairs of requests of which the second was inserted right behind the
    /// first while that waited, and not merged into it.
    pub fn missed_merges(&self) -> u64 {
        self.missed_pairs().len() as u64
    }

    /// Median of the sizes of the first of such pairs in sectors.
    pub fn missed_first_sectors(&self) -> Option<u64> {
        let pairs = self.missed_pairs();
        median(pairs.iter().map(|(a, _)| a.end - a.begin).collect())
    }

    /// The same of the second.
    pub fn missed_second_sectors(&self) -> Option<u64> {
        let pairs = self.missed_pairs();
        median(pairs.iter().map(|(_, b)| b.end - b.begin).collect())
    }

    fn missed_pairs(&self) -> Vec<(Extent, Extent)> {
        let mut by_end: BTreeMap<u64, Vec<&Extent>> = BTreeMap::new();
        for e in &self.extents {
            by_end.entry(e.end).or_default().push(e);
        }
        let first = |e: &Extent| {
            let before = by_end.get(&e.begin).into_iter().flatten();
            let waited = |b: &&&Extent| b.insert < e.insert && e.insert < b.issue;
            before.into_iter().find(waited).map(|b| (**b, *e))
        };
        self.extents.iter().filter_map(first).collect()
    }
}

fn median(values: Vec<u64>) -> Option<u64> {
    percentile(50, values)
}

fn percentile(percent: usize, mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() * percent / 100).copied()
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
        assert_eq!((writes.nr_stalls(), writes.stalled()), (0, None));
        assert_eq!(writes.d2c_median_ns(), Some(10));
        assert_eq!(
            (all.0[1].figures.count, all.0[1].figures.q2d_max_ns),
            (1, 1)
        );
    }

    #[test]
    fn a_stall_holds_what_is_queued_while_its_first_bio_waits() {
        let mut all = Watches(vec![Watch::new(BioFilter::default())]);
        let ms = 1_000_000;
        // Given in order of completion.
        for (q, d) in [(0, 592), (200, 210), (12, 604), (86, 792), (800, 1200)] {
            all.bio(&bio(1, Rwbs::WRITE, q * ms, d * ms, (d + 1) * ms));
        }
        let f = &all.0[0].figures;
        assert_eq!(f.nr_stalls(), 2);
        // The other has one bio.
        assert_eq!(f.stalled(), Some((4, 200 * ms, 706 * ms)));
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
        let sizes = (f.missed_first_sectors(), f.missed_second_sectors());
        assert_eq!(sizes, (Some(376), Some(248)));
    }
}
