// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a trace can be re-enacted, and what it says about its machine.

use crate::commands::{Commands, Ended};
use blklab_analysis::findings::counted;
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Error, Op, Time};
use std::collections::BTreeMap;

/// Bios and commands of a device that may be under way at a time: more is damage.
const OPEN_MAX: usize = 1 << 18;

/// Commands that were under way when a trace began and that are put in front of it.
const LEFT_OVER_MAX: usize = 1024;

/// Devices that are looked at.
const DISKS_MAX: usize = 256;

/// Of the dispatches so many may have no Q, beside those of the beginning: 1 in this.
const UNQUEUED: u64 = 50;

/// Largest sector: beyond it sums could overflow.
pub(crate) const SECTOR_MAX: u64 = 1 << 55;

/// A pause without events after which a trace is not taken for one: an hour.
const PAUSE_MAX_NS: u64 = 3_600_000_000_000;

/// Looks at a trace before it is re-enacted.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    disks: BTreeMap<Dev, DiskSurvey>,
    first: Option<Time>,
    last: Time,
    nr_backwards: u64,
    nr_captures: u64,
    nr_left_out: u64,
    jumps: bool,
}

/// What a survey found on a device.
#[derive(Clone, Debug, Default)]
pub struct DiskSurvey {
    /// Bios.
    pub nr_queued: u64,
    /// Commands that went to the driver.
    pub nr_issued: u64,
    /// Commands that ended.
    pub nr_completed: u64,
    /// Bios or requests that were cut.
    pub nr_split: u64,
    /// Most commands at the device.
    pub depth_max: u32,
    /// Largest command in sectors.
    pub sectors_max: u64,
    /// Writes whose Q has the sync flag.
    pub nr_sync_writes: u64,
    /// Discards.
    pub nr_discards: u64,
    /// Requests that flush the cache or pass it.
    pub nr_forced: u64,
    /// Commands of those that pass the cache at the device itself (FUA).
    pub nr_fua: u64,
    /// Most requests that were allocated at a time.
    pub requests_max: u32,
    /// When the plug timer fired first.
    pub(crate) unplug_timer: Option<Time>,
    /// Commands that were queued before the trace began, in the order in which they
    /// have to be there: those at the device first.
    pub(crate) left_over: Vec<Event>,
    pub(crate) nr_at_device: usize,
    nr_unqueued: u64,
    /// Queued, not yet dispatched: from sector to sector.
    queued: BTreeMap<u64, u64>,
    /// What was queued while something else waited at its first sector.
    queued_again: BTreeMap<u64, Vec<u64>>,
    /// Requests that were granted and have not been dispatched, by their first sector.
    granted: BTreeMap<u64, u32>,
    nr_granted: usize,
    at_device: Commands,
    overfull: bool,
    odd: Option<String>,
}

impl Survey {
    /// The disk that can be re-enacted: the busiest one that shows enough. `lost` is
    /// how many events the reader knows to be missing.
    ///
    /// # Errors
    /// Why none can: in a clause.
    pub fn disk(&self, lost: u64) -> Result<(Dev, &DiskSurvey), Error> {
        if self.nr_captures > 0 {
            return Err(Error::new("several captures are joined in it"));
        }
        if self.nr_backwards > 0 {
            return Err(Error::new(format!(
                "time goes back in it, {}",
                counted(self.nr_backwards, "times")
            )));
        }
        if lost > 0 {
            return Err(Error::new(match lost {
                1 => "an event is missing from it".to_owned(),
                n => format!("{n} events are missing from it"),
            }));
        }
        if self.jumps {
            return Err(Error::new("its times jump by more than an hour"));
        }
        if self.nr_left_out > 0 {
            return Err(Error::new(format!("it has more than {DISKS_MAX} devices")));
        }
        let busiest = self.disks.iter().max_by_key(|(_, d)| d.nr_issued);
        let Some((dev, disk)) = busiest.filter(|(_, d)| d.nr_issued > 0) else {
            return Err(Error::new(
                "no D event says when something went to a device",
            ));
        };
        disk.check()?;
        Ok((*dev, disk))
    }

    /// What was found on a device, whether or not it can be re-enacted.
    pub fn found_on(&self, dev: Dev) -> Option<&DiskSurvey> {
        self.disks.get(&dev)
    }

    /// When the trace begins.
    pub fn start(&self) -> Time {
        self.first.unwrap_or_default()
    }

    /// When it ends.
    pub fn end(&self) -> Time {
        self.last
    }
}

impl DiskSurvey {
    fn check(&self) -> Result<(), Error> {
        if let Some(odd) = &self.odd {
            return Err(Error::new(odd.clone()));
        }
        for (n, what) in [
            (
                self.nr_queued,
                "no Q event says when something was submitted",
            ),
            (self.nr_completed, "no C event says when a command ended"),
        ] {
            if n == 0 {
                return Err(Error::new(what));
            }
        }
        if self.overfull {
            return Err(Error::new("more is queued in it than a device can have"));
        }
        if self.nr_unqueued * UNQUEUED > self.nr_issued {
            return Err(Error::new(format!(
                "{} of {} commands were never queued in it: events are missing",
                self.nr_unqueued, self.nr_issued
            )));
        }
        Ok(())
    }

    fn queue(&mut self, e: &Event) {
        self.nr_queued += 1;
        self.nr_discards += u64::from(e.rwbs.has(Rwbs::DISCARD));
        self.nr_forced += u64::from(e.rwbs.has(Rwbs::FLUSH) || e.rwbs.has(Rwbs::FUA));
        let is_sync_write = e.rwbs.op() == Some(Op::Write) && e.rwbs.has(Rwbs::SYNC);
        self.nr_sync_writes += u64::from(is_sync_write);
        if e.bytes > 0 && self.queued.contains_key(&e.sector) {
            let again = self.queued_again.entry(e.sector).or_default();
            again.push(e.end_sector());
            self.overfull |= again.len() > OPEN_MAX;
        } else if e.bytes > 0 {
            self.queued.insert(e.sector, e.end_sector());
        }
        self.overfull |= self.queued.len() > OPEN_MAX;
    }

    fn grant(&mut self, e: &Event) {
        if e.bytes > 0 {
            *self.granted.entry(e.sector).or_default() += 1;
            self.nr_granted += 1;
            let nr = self.nr_granted + self.at_device.len();
            self.requests_max = self.requests_max.max(u32::try_from(nr).unwrap_or(u32::MAX));
            self.overfull |= nr > OPEN_MAX;
        }
    }

    fn issue(&mut self, e: &Event, op: Op) {
        self.nr_issued += 1;
        self.nr_fua += u64::from(op == Op::Write && e.rwbs.has(Rwbs::FUA));
        self.sectors_max = self.sectors_max.max(e.nr_sectors());
        if e.bytes == 0 {
            return;
        }
        // A second D is of the same command unless another request was granted there.
        let is_new = !self.at_device.has(e.sector, op) || self.granted.contains_key(&e.sector);
        if is_new {
            self.at_device.add(e, op);
        }
        let depth = u32::try_from(self.at_device.len()).unwrap_or(u32::MAX);
        self.depth_max = self.depth_max.max(depth);
        self.overfull |= self.at_device.len() > OPEN_MAX;
        if is_new && !self.take_queued(e.sector, e.end_sector()) {
            self.left_over(e, false);
        }
    }

    /// What was queued goes to the device. False if nothing was.
    fn take_queued(&mut self, from: u64, to: u64) -> bool {
        let mut found = false;
        self.take_granted(from, to);
        if let Some((&start, &end)) = self.queued.range(..from).next_back()
            && end > from
        {
            found = true;
            self.queued.insert(start, from);
            if end > to {
                self.queued.insert(to, end);
            }
        }
        while let Some((&start, &end)) = self.queued.range(from..to).next() {
            found = true;
            self.queued.remove(&start);
            if end > to {
                let rest = self.queued.entry(to).or_default();
                *rest = (*rest).max(end);
            }
        }
        if let Some(ends) = self.queued_again.get_mut(&from) {
            if let Some(end) = ends.pop() {
                self.queued.insert(from, end);
            }
            if ends.is_empty() {
                self.queued_again.remove(&from);
            }
        }
        found
    }

    /// A request goes to the device, with those that were merged into it; another one at its
    /// first sector stays.
    fn take_granted(&mut self, from: u64, to: u64) {
        let sectors: Vec<u64> = self.granted.range(from..to).map(|(s, _)| *s).collect();
        for sector in sectors {
            let nr = self.granted.remove(&sector).unwrap_or_default();
            self.nr_granted -= nr as usize;
            if sector == from && nr > 1 {
                self.granted.insert(sector, nr - 1);
                self.nr_granted += nr as usize - 1;
            }
        }
    }

    fn left_over(&mut self, e: &Event, at_device: bool) {
        if self.left_over.len() >= LEFT_OVER_MAX {
            self.nr_unqueued += 1;
        } else if at_device {
            self.left_over.insert(self.nr_at_device, *e);
            self.nr_at_device += 1;
        } else {
            self.left_over.push(*e);
        }
    }

    fn complete(&mut self, e: &Event, op: Op) {
        self.nr_completed += 1;
        if e.bytes == 0 {
            return;
        }
        if self.at_device.complete(e, op) == Ended::Unknown {
            let mut command = *e;
            command.action = Action::Issue;
            self.left_over(&command, true);
        }
    }
}

impl TraceSink for Survey {
    fn event(&mut self, e: &Event) {
        if self.first.is_none() {
            self.first = Some(e.time);
            self.last = e.time;
        }
        self.nr_backwards += u64::from(e.time < self.last);
        self.jumps |= e.time.0.saturating_sub(self.last.0) > PAUSE_MAX_NS;
        self.last = self.last.max(e.time);
        let Some(op) = e.rwbs.op().filter(|_| !e.rwbs.has(Rwbs::PC)) else {
            if e.action == Action::UnplugTimer
                && let Some(disk) = self.disks.get_mut(&e.dev)
            {
                disk.unplug_timer.get_or_insert(e.time);
            }
            return;
        };
        if !matches!(
            e.action,
            Action::Queue | Action::GetRequest | Action::Issue | Action::Complete | Action::Split
        ) {
            return;
        }
        if self.disks.len() >= DISKS_MAX && !self.disks.contains_key(&e.dev) {
            self.nr_left_out += 1;
            return;
        }
        let disk = self.disks.entry(e.dev).or_default();
        if e.sector > SECTOR_MAX {
            disk.odd = Some(format!("it has I/O at sector {}", e.sector));
            return;
        }
        if disk.overfull {
            return;
        }
        match e.action {
            Action::Queue => disk.queue(e),
            Action::GetRequest => disk.grant(e),
            Action::Issue => disk.issue(e, op),
            Action::Complete => disk.complete(e, op),
            _ => disk.nr_split += 1,
        }
    }

    fn new_recording(&mut self) {
        self.nr_captures += u64::from(self.first.is_some());
    }
}
