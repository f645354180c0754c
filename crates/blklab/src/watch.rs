// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures about some of the bios of a run, taken from its trace events: those
//! of one direction, synchronous or not, of one process.

use blklab_analysis::lifecycle::{BioLife, LifeSink};
use blklab_types::{Op, Pid};

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
    /// From Q to C of each, for the number outstanding.
    spans: Vec<(u64, u64)>,
}

impl BioFigures {
    /// Largest number between Q and C at a time.
    pub fn outstanding_max(&self) -> u64 {
        let begins = self.spans.iter().map(|s| (s.0, 1));
        let ends = self.spans.iter().map(|s| (s.1, -1));
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
}

/// Collects the figures of some bios.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    filter: BioFilter,
    /// Processes of the wanted name.
    pids: Vec<Pid>,
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
        f.spans.push((bio.queue.0, complete.0));
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
        assert_eq!(
            (all.0[1].figures.count, all.0[1].figures.q2d_max_ns),
            (1, 1)
        );
    }
}
