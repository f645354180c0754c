// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tables say of a device, summed over the lives of its bios: a few additions
//! per event, where the statistics of a trace keep distributions. The sums are those
//! of the statistics, so that a number is the same with and without them.

use blklab_analysis::lifecycle::{BioLife, LifeSink};
use blklab_types::{Dev, Pid, Time};

/// Number, sum and largest of some times, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// All of them together.
    pub sum_ns: u128,
    /// The longest.
    pub max_ns: u64,
}

impl Times {
    #[inline]
    fn add(&mut self, from: Option<Time>, until: Option<Time>) {
        if let (Some(from), Some(until)) = (from, until) {
            let ns = until.since(from).ns();
            self.count += 1;
            self.sum_ns += u128::from(ns);
            self.max_ns = self.max_ns.max(ns);
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Times) -> Times {
        Times {
            count: self.count + other.count,
            sum_ns: self.sum_ns + other.sum_ns,
            max_ns: self.max_ns.max(other.max_ns),
        }
    }

    /// Their mean in ns; 0 if there are none.
    pub fn mean_ns(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.sum_ns as f64 / count as f64,
        }
    }
}

/// A number over time, of which only the mean is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverTime {
    value: u32,
    start: Option<Time>,
    now: Time,
    /// Value times ns.
    area: u128,
}

impl OverTime {
    /// It is `value` from `time` on; a time before the last one counts as that.
    #[inline]
    fn set(&mut self, time: Time, value: u32) {
        if time > self.now {
            self.area += u128::from(time.since(self.now).ns()) * u128::from(self.value);
            self.now = time;
        }
        self.start.get_or_insert(self.now);
        self.value = value;
    }

    /// The mean from the first time to the last; 0 if no time passed.
    pub fn mean(&self) -> f64 {
        match self.start.map_or(0, |start| self.now.since(start).ns()) {
            0 => 0.0,
            length_ns => self.area as f64 / length_ns as f64,
        }
    }
}

/// Who queued bios: whether it was one process or several is all that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processes {
    /// No bio was queued.
    #[default]
    None,
    /// All were queued by this process.
    One(Pid),
    /// Several processes queued some.
    Several,
}

impl Processes {
    /// These and others.
    #[must_use]
    #[inline]
    pub fn and(self, other: Processes) -> Processes {
        match (self, other) {
            (Processes::None, some) | (some, Processes::None) => some,
            (one, same) if one == same => one,
            _ => Processes::Several,
        }
    }
}

/// Sums over the bios of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LifeTotals {
    /// From Q to C.
    pub q2c: Times,
    /// From D to C.
    pub d2c: Times,
    /// From I to D, of bios that began a request.
    pub i2d: Times,
    /// Bios between Q and C.
    pub in_flight: OverTime,
    /// Most requests between D and C at a time.
    pub issued_max: u32,
    /// Most requests between I and D at a time.
    pub waiting_max: u32,
    /// Requests that were issued after one that had come later.
    pub nr_overtaken: u64,
    /// Who queued them.
    pub processes: Processes,
}

impl LifeSink for LifeTotals {
    #[inline]
    fn bio(&mut self, bio: &BioLife) {
        self.q2c.add(Some(bio.queue), bio.complete);
        self.d2c.add(bio.issue, bio.complete);
        self.i2d.add(bio.insert, bio.issue);
        self.processes = self.processes.and(Processes::One(bio.pid));
    }

    #[inline]
    fn depth(&mut self, time: Time, _: Dev, nr_bios: u32, nr_issued: u32) {
        self.in_flight.set(time, nr_bios);
        self.issued_max = self.issued_max.max(nr_issued);
    }

    #[inline]
    fn in_scheduler(&mut self, _: Dev, nr_waiting: u32, overtaken: bool) {
        self.waiting_max = self.waiting_max.max(nr_waiting);
        self.nr_overtaken += u64::from(overtaken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, MdSpec, Workload};
    use crate::run::{Collect, RunOptions, RunOutput, run};
    use crate::targets::{Planner, Sim};
    use blklab_analysis::distribution::Distribution;
    use blklab_analysis::stats::DeviceStats;

    fn outputs(kernel: &str, scheduler: &str, md: Option<&str>, job: &str) -> [RunOutput; 2] {
        let workload = Workload::Fio {
            name: "a.fio".into(),
            text: job.into(),
        };
        let planner = Planner::new(Sim::default());
        let mut e = Experiment::new("a", workload);
        e.choose_kernel(kernel.parse().unwrap(), planner.catalogue());
        e.choose_scheduler(scheduler, planner.catalogue()).unwrap();
        e.md = md.map(|level| MdSpec::parse(&[level]).unwrap());
        let plan = planner.plan(&e).unwrap();
        [Collect::Statistics, Collect::Totals].map(|collect| {
            let options = RunOptions {
                collect,
                ..RunOptions::default()
            };
            run(&plan, &options).unwrap()
        })
    }

    fn are(times: Times, distribution: &Distribution) {
        let all = (times.count, times.sum_ns, times.max_ns);
        let expected = (distribution.count(), distribution.sum(), distribution.max());
        assert_eq!(all, expected);
        assert_eq!(times.mean_ns().to_bits(), distribution.mean().to_bits());
    }

    fn agree(lives: &LifeTotals, stats: &DeviceStats) {
        are(lives.q2c, &stats.phases.q2c);
        are(lives.d2c, &stats.phases.d2c);
        are(lives.i2d, &stats.phases.i2d);
        let in_flight = lives.in_flight.mean().to_bits();
        assert_eq!(in_flight, stats.depth.mean.to_bits());
        assert_eq!(lives.issued_max, stats.device_depth.max);
        assert_eq!(lives.waiting_max, stats.scheduler.max_waiting);
        assert_eq!(lives.nr_overtaken, stats.scheduler.nr_overtaken);
    }

    /// With merges, flushes, an array, one process and several.
    #[test]
    fn the_sums_are_those_of_the_statistics() {
        let writers = "[w]\nrw=write\nbs=16k\nsize=2m\nnumjobs=3\nend_fsync=1\n";
        let readers = "[r]\nrw=randread\nioengine=libaio\niodepth=8\ndirect=1\nsize=1m\n";
        for (kernel, scheduler, md, job) in [
            ("2.6.28", "cfq", None, writers),
            ("2.6.28", "deadline", Some("raid1:2"), writers),
            ("6.1", "none", None, readers),
            ("6.1", "bfq", None, writers),
        ] {
            let [all, totals] = outputs(kernel, scheduler, md, job);
            assert_eq!(all.digest, totals.digest);
            assert_eq!((&all.disks, &all.array), (&totals.disks, &totals.array));
            assert_eq!(totals.stats.nr_events, 0, "nobody has asked for them");
            let uses = || totals.disks.iter().chain(&totals.array);
            let mut nr_bios = 0;
            for stats in &all.stats.devices {
                let of = uses().find(|u| u.dev == stats.dev).expect("a device");
                agree(&of.lives, stats);
                nr_bios += of.lives.q2c.count;
            }
            assert!(nr_bios > 10, "{nr_bios}");
            let processes = uses().map(|u| u.lives.processes);
            let several = processes.fold(Processes::None, Processes::and) == Processes::Several;
            assert_eq!(several, all.stats.processes.len() > 1);
        }
    }
}
