// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `/sys/block/X/stat` would count during a run, from its events, for
//! each disk and an array of them.
//!
//! Source: Documentation/block/stat.rst. A request counts when it completes,
//! with the time since it was allocated (G); a bio that joined a request
//! counts as a merge in the request's direction. Flushes without data do not
//! count, as before Linux 5.5. The disk is busy while a bio is under way.
//! Times are in ns. An array counts the bios that it gets and nothing else
//! (`make_request` of drivers/md/raid0.c and raid1.c, 2.6.28).

use crate::life_totals::LifeTotals;
use blklab_analysis::lifecycle::{BioLife, LifeSink, RequestLife};
use blklab_trace::{Action, Event};
use blklab_types::{Dev, Op, Time};

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// Requests completed.
    pub ios: u64,
    /// Bios that joined a request.
    pub merges: u64,
    /// Sum of the requests' times.
    pub ticks_ns: u64,
}

/// Counters of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Reads.
    pub read: DirectionStats,
    /// Writes.
    pub write: DirectionStats,
    /// Discards.
    pub discard: DirectionStats,
    /// Time with a bio under way.
    pub busy_ns: u64,
    busy_since: Option<Time>,
}

impl LifeSink for DiskStats {
    #[inline]
    fn request(&mut self, r: &RequestLife) {
        let direction = match r.rwbs.op() {
            Some(Op::Read) => &mut self.read,
            Some(Op::Write) => &mut self.write,
            Some(Op::Discard) => &mut self.discard,
            _ => return,
        };
        let begin = r.get.or(r.insert).or(r.issue);
        if let (Some(begin), Some(end), true) = (begin, r.complete, r.bytes > 0) {
            direction.ios += 1;
            direction.merges += u64::from(r.nr_back_merges) + u64::from(r.nr_front_merges);
            direction.ticks_ns += end.since(begin).ns();
        }
    }

    #[inline]
    fn depth(&mut self, time: Time, _: Dev, nr_bios: u32, _: u32) {
        match (nr_bios, self.busy_since) {
            (0, Some(since)) => {
                self.busy_ns += time.since(since).ns();
                self.busy_since = None;
            }
            (1.., None) => self.busy_since = Some(time),
            _ => {}
        }
    }
}

/// A device of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    dev: Dev,
    is_array: bool,
    stats: DiskStats,
    lives: LifeTotals,
}

/// Counters of all devices of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllStats {
    /// The array, if there is one, then disks in the order of their first bio.
    devices: Vec<Device>,
    /// The one of the last event.
    current: usize,
    has_array: bool,
}

impl AllStats {
    /// With an array among the devices, if it is named.
    pub fn new(array: Option<Dev>) -> AllStats {
        let mut all = AllStats::default();
        if let Some(dev) = array {
            all.add(dev, true);
            all.has_array = true;
        }
        all
    }

    fn add(&mut self, dev: Dev, is_array: bool) {
        self.devices.push(Device {
            dev,
            is_array,
            stats: DiskStats::default(),
            lives: LifeTotals::default(),
        });
    }

    /// Events, of which the array's are counted; their lives may have been told.
    pub fn events(&mut self, batch: &[Event]) {
        if self.has_array {
            batch.iter().for_each(|e| self.event_beside_array(e));
        }
    }

    fn event_beside_array(&mut self, e: &Event) {
        let array = &mut self.devices[0];
        if e.dev == array.dev && e.action == Action::Queue && e.bytes > 0 {
            match e.rwbs.op() {
                Some(Op::Read) => array.stats.read.ios += 1,
                Some(Op::Write) => array.stats.write.ios += 1,
                _ => {}
            }
        }
    }

    /// The counters of a device at `now`, when the run ends.
    pub fn at(&self, dev: Dev, now: Time) -> DiskStats {
        let known = self.devices.iter().find(|d| d.dev == dev);
        known.map_or(DiskStats::default(), |d| d.stats.at(now))
    }

    /// The sums over the bios of a device.
    pub fn lives(&self, dev: Dev) -> LifeTotals {
        let known = self.devices.iter().find(|d| d.dev == dev);
        known.map_or(LifeTotals::default(), |d| d.lives)
    }

    #[inline(always)]
    fn device(&mut self, dev: Dev) -> &mut Device {
        let mut place = self.current;
        if self.devices.get(place).is_none_or(|d| d.dev != dev) {
            place = self.find(dev);
            self.current = place;
        }
        &mut self.devices[place]
    }

    fn find(&mut self, dev: Dev) -> usize {
        let known = self.devices.iter().position(|d| d.dev == dev);
        known.unwrap_or_else(|| {
            self.add(dev, false);
            self.devices.len() - 1
        })
    }
}

impl LifeSink for AllStats {
    #[inline(always)]
    fn bio(&mut self, bio: &BioLife) {
        self.device(bio.dev).lives.bio(bio);
    }

    #[inline(always)]
    fn request(&mut self, r: &RequestLife) {
        let device = self.device(r.dev);
        if !device.is_array {
            device.stats.request(r);
        }
    }

    #[inline(always)]
    fn depth(&mut self, time: Time, dev: Dev, nr_bios: u32, nr_issued: u32) {
        let device = self.device(dev);
        if !device.is_array {
            device.stats.depth(time, dev, nr_bios, nr_issued);
        }
        device.lives.depth(time, dev, nr_bios, nr_issued);
    }

    #[inline(always)]
    fn in_scheduler(&mut self, dev: Dev, nr_waiting: u32, overtaken: bool) {
        let lives = &mut self.device(dev).lives;
        lives.in_scheduler(dev, nr_waiting, overtaken);
    }
}

impl DiskStats {
    /// The counters at `now`, when the run ends.
    #[must_use]
    pub fn at(mut self, now: Time) -> DiskStats {
        self.depth(now, Dev::default(), 0, 0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Op::{Discard, Read, Write};
    use blklab_analysis::lifecycle::Lifecycles;
    use blklab_trace::{Action, Event, Rwbs, TraceSink as _};

    #[test]
    fn a_merged_read_a_write_and_a_discard() {
        let mut tracker = Lifecycles::new(DiskStats::default());
        let mut event = |time: u64, action, op, sector, sectors: u32| {
            tracker.event(&Event {
                time: Time(time),
                action,
                rwbs: Rwbs::of_op(op),
                sector,
                bytes: sectors * 512,
                arg: 0,
                pid: 1,
                dev: Dev::default(),
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
            });
        };
        event(10, Action::Queue, Read, 0, 8);
        event(11, Action::GetRequest, Read, 0, 8);
        event(12, Action::Insert, Read, 0, 8);
        event(13, Action::Queue, Read, 8, 8);
        event(14, Action::BackMerge, Read, 8, 8);
        event(15, Action::Issue, Read, 0, 16);
        event(31, Action::Complete, Read, 0, 16);
        event(50, Action::Queue, Write, 99, 8);
        event(50, Action::GetRequest, Write, 99, 8);
        event(51, Action::Issue, Write, 99, 8);
        event(60, Action::Complete, Write, 99, 8);
        event(61, Action::Queue, Discard, 200, 64);
        event(61, Action::GetRequest, Discard, 200, 64);
        event(62, Action::Issue, Discard, 200, 64);
        event(65, Action::Complete, Discard, 200, 64);
        let (stats, _) = tracker.finish();
        let stats = stats.at(Time(70));
        let direction = |ios, merges, ticks_ns| DirectionStats {
            ios,
            merges,
            ticks_ns,
        };
        assert_eq!(stats.read, direction(1, 1, 20));
        assert_eq!(stats.write, direction(1, 0, 10));
        assert_eq!(stats.discard, direction(1, 0, 4));
        assert_eq!(stats.busy_ns, 35, "10 to 31, 50 to 60 and 61 to 65");
    }
}
