// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first I/O after a pause takes long: the device has to leave a power state.
//!
//! A disk that has stopped spinning takes seconds to start; an NVMe drive in a deep state, or a
//! SATA link that sleeps, tens of milliseconds.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::Section;
use crate::findings::sums::is_longer;
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Whole, time_text,
};
use crate::spread::percentile;
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "power-state",
    what: "the first I/O after a pause takes long: the device leaves a power state",
    rule: Rule {
        condition: "a request that comes when the device had nothing to do for a while takes \
                    longer from D to C than others",
        threshold: "nothing to do for 1 s or more; 10 ms or more, 20 times what half of the \
                    others take, and 4 times what 9 of 10 of them do not exceed; twice or more, \
                    and half of all that come so; 4 others are shown",
        exception: "",
    },
    explains: &["device-slow"],
    remedies: &[NO_STANDBY, KEEP_AWAKE, SHALLOWER_STATE, LINK_AWAKE],
    rests_on_absence: false,
    detector: || Box::new(PowerState::default()),
};

const NO_STANDBY: Remedy = Remedy::outside(
    "no-standby",
    Outside::Device,
    "no standby of the disk (hdparm -S 0, hdparm -B 254)",
);

const KEEP_AWAKE: Remedy = Remedy::outside(
    "keep-awake",
    Outside::Applications,
    "something that reads it now and then, if it is to answer at once",
);

const SHALLOWER_STATE: Remedy = Remedy::outside(
    "shallower-power-state",
    Outside::Device,
    "NVMe: nvme_core.default_ps_max_latency_us=0, or less than the state's exit \
     latency (nvme id-ctrl)",
);

const LINK_AWAKE: Remedy = Remedy::outside(
    "link-awake",
    Outside::Device,
    "SATA: link_power_management_policy max_performance",
);

/// A pause.
const PAUSE_NS: u64 = 1_000_000_000;

/// Who takes less did not wait for a power state.
const SLOW_NS: u64 = 10_000_000;

/// So far beyond what half of the others take, and what 9 of 10 do not exceed.
const BEYOND_HALF: u64 = 20;
const BEYOND_MOST: u64 = 4;

/// So many others tell what requests take.
const OTHERS_MIN: usize = 4;

/// So often, and so large a part of those behind a pause.
const TIMES_MIN: u64 = 2;
const SHARE_MIN: f64 = 0.5;

/// A disk that has to start takes so long at least.
const STARTS_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
struct PowerState {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// Requests behind a pause.
    behind_pause: u64,
    /// The shortest pause behind which one took long.
    pause_ns: Option<u64>,
    half_ns: u64,
}

impl Detector for PowerState {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            let woken = behind_pauses(disk);
            if !woken.is_empty() {
                let sum = self.disks.entry(disk.dev).or_default();
                sum.disk(section, disk, &woken);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// Requests that came behind a pause: their places, with how long it was, ns.
fn behind_pauses(disk: &Disk) -> Vec<(usize, u64)> {
    let pauses = disk
        .idle
        .iter()
        .filter(|[from, to]| to.since(*from).0 >= PAUSE_NS);
    let first = |[from, to]: &[blklab_types::Time; 2]| {
        let place = disk.issued().partition_point(|r| r.life.issue < Some(*to));
        (place, to.since(*from).0)
    };
    let issued = |(place, _): &(usize, u64)| *place < disk.issued().len();
    pauses.map(first).filter(issued).collect()
}

impl Sum {
    fn disk(&mut self, section: &Section, disk: &Disk, woken: &[(usize, u64)]) {
        let is_woken = |i: usize| woken.binary_search_by_key(&i, |(place, _)| *place).is_ok();
        let issued = disk.issued().iter().enumerate();
        let others = issued.filter(|(i, r)| r.life.bytes > 0 && !is_woken(*i));
        let others: Vec<u64> = others.filter_map(|(_, r)| r.d2c()).collect();
        if others.len() < OTHERS_MIN {
            return;
        }
        let half_ns = percentile(50, others.clone()).unwrap_or(0);
        let most_ns = percentile(90, others).unwrap_or(0);
        self.half_ns = self.half_ns.max(half_ns);
        let is_slow = |ns: u64| {
            ns >= SLOW_NS
                && is_longer(ns, BEYOND_HALF, half_ns)
                && is_longer(ns, BEYOND_MOST, most_ns)
        };
        for (place, pause_ns) in woken {
            let r: &Request = &disk.requests[*place];
            let Some(d2c) = r.d2c() else { continue };
            self.behind_pause += 1;
            if is_slow(d2c) {
                let shortest = self.pause_ns.map_or(*pause_ns, |ns| ns.min(*pause_ns));
                self.pause_ns = Some(shortest);
                self.harm.add(r.pid, d2c, || section.instance(r, Some(d2c)));
            }
        }
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let count = self.harm.count();
        if count < TIMES_MIN || (count as f64) < SHARE_MIN * self.behind_pause as f64 {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        let mean_ns = self.harm.total_ns() / self.harm.count().max(1);
        f.what = format!(
            "The first I/O after a pause takes {} on average, {} the longest, for {}; half of the \
             others take {} or less.",
            time_text(mean_ns),
            time_text(self.harm.worst_ns()),
            f.victim_names(),
            time_text(self.half_ns)
        );
        f.how = format!(
            "{} of {} requests that came when the device had had nothing to do for 1 s or more take \
             so long; the shortest such pause is {}.",
            count,
            self.behind_pause,
            time_text(self.pause_ns.unwrap_or(0))
        );
        let starts = mean_ns >= STARTS_NS;
        f.cause = Some(
            if starts {
                "the device: a disk that has stopped spinning has to start"
            } else {
                "the device or its link: a power state that it has to leave"
            }
            .to_owned(),
        );
        f.doubt(
            Confidence::Likely,
            "power states of the device and its link",
        );
        f.remedies = if starts {
            vec![NO_STANDBY, KEEP_AWAKE]
        } else {
            vec![SHALLOWER_STATE, LINK_AWAKE]
        };
        Some(f)
    }
}
