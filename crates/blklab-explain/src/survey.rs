// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a trace can be re-enacted, and what it says about its machine.

use crate::asking::{Answer, Asking};
use crate::commands::{Commands, Ended};
use crate::open::Open;
use blklab_analysis::findings::counted;
use blklab_analysis::names::Names;
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Error, Op, Pid, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Bios and commands of a device that may be under way at a time: more is damage.
const OPEN_MAX: usize = 1 << 18;

/// Commands that were under way when a trace began and that are put in front of it.
const LEFT_OVER_MAX: usize = 1024;

/// Processes that are remembered of a device.
const SUBMITTERS_MAX: usize = 1 << 16;

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
    names: Names,
    /// Processes of which BFQ says that they ended.
    ended: BTreeSet<Pid>,
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
    /// What has not gone to the device, by direction.
    open: BTreeMap<Op, Open>,
    at_device: Commands,
    asking: Asking,
    /// Processes that submitted bios, and when each did so last.
    submitters: BTreeMap<Pid, Time>,
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

    /// What the processes are called, as far as the trace says.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Processes that ended, as far as the trace says.
    pub fn ended(&self) -> &BTreeSet<Pid> {
        &self.ended
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

    /// The processes that submitted bios, by number, and when each did so last; 65,536 of
    /// them at most.
    pub fn submitters(&self) -> impl Iterator<Item = (Pid, Time)> {
        self.submitters.iter().map(|(pid, last)| (*pid, *last))
    }

    fn queue(&mut self, e: &Event, op: Op) {
        self.nr_queued += 1;
        if self.submitters.len() < SUBMITTERS_MAX || self.submitters.contains_key(&e.pid) {
            self.submitters.insert(e.pid, e.time);
        }
        self.nr_discards += u64::from(e.rwbs.has(Rwbs::DISCARD));
        self.nr_forced += u64::from(e.rwbs.has(Rwbs::FLUSH) || e.rwbs.has(Rwbs::FUA));
        let is_sync_write = e.rwbs.op() == Some(Op::Write) && e.rwbs.has(Rwbs::SYNC);
        self.nr_sync_writes += u64::from(is_sync_write);
        if e.bytes > 0 {
            let open = self.open.entry(op).or_default();
            open.queue(e);
            self.overfull |= open.len_at(e.sector) > OPEN_MAX;
        }
    }

    fn grant(&mut self, e: &Event, op: Op, is_queued: bool) {
        if e.bytes > 0 {
            self.open.entry(op).or_default().grant(e, is_queued);
            let granted: usize = self.open.values().map(Open::nr_granted).sum();
            let nr = granted + self.at_device.len();
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
        let open = self.open.entry(op).or_default();
        // A second D is of the same command unless another request was granted there.
        let is_new = !self.at_device.has(e.sector, op) || open.has_granted(e.sector);
        let was_queued = !is_new || open.take(e.sector, e.end_sector());
        if is_new {
            self.at_device.add(e, op);
        }
        let depth = u32::try_from(self.at_device.len()).unwrap_or(u32::MAX);
        self.depth_max = self.depth_max.max(depth);
        self.overfull |= self.at_device.len() > OPEN_MAX;
        if !was_queued {
            self.left_over(e, false);
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
        let answer = disk.asking.event(e);
        if answer == Some(Answer::Refused) {
            return disk.open.entry(op).or_default().refuse(e);
        }
        match e.action {
            Action::Queue => disk.queue(e, op),
            Action::GetRequest => disk.grant(e, op, answer.is_some()),
            Action::Issue => disk.issue(e, op),
            Action::Complete => disk.complete(e, op),
            _ => disk.nr_split += 1,
        }
    }

    fn message(&mut self, _: &Event, text: &str) {
        if self.ended.len() < SUBMITTERS_MAX {
            self.ended.extend(ended(text));
        }
    }

    fn wants_messages(&self) -> bool {
        true
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.names.set(pid, comm);
    }

    fn new_recording(&mut self) {
        self.nr_captures += u64::from(self.first.is_some());
    }
}

/// The process whose end BFQ tells in a message (`bfq_exit_bfqq` of block/bfq-iosched.c).
fn ended(text: &str) -> Option<Pid> {
    let (queue, said) = text.trim().strip_prefix("bfq")?.split_once(' ')?;
    let pid = queue.strip_suffix('S')?;
    said.starts_with("exit_bfqq").then_some(pid)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines `action pid rwbs sector nr_sectors [new_sector]`, 1 us apart.
    fn survey(text: &str) -> Survey {
        let mut survey = Survey::default();
        for (i, line) in text.lines().enumerate() {
            let f: Vec<&str> = line.split_whitespace().collect();
            let number = |i: usize| f.get(i).map_or(0, |t| t.parse::<u64>().expect(line));
            let rwbs = if f[2] == "R" { Rwbs::READ } else { Rwbs::WRITE };
            let event = Event {
                action: Action::from_letters(f[0].trim_end_matches('!')).expect(line),
                rwbs,
                sector: number(3),
                bytes: 512 * number(4) as u32,
                arg: number(5),
                ..Event::message(Time(1000 * i as u64), 0, number(1) as Pid, Dev::default())
            };
            survey.event(&if f[0].ends_with('!') {
                event.refused()
            } else {
                event
            });
        }
        survey
    }

    fn left_over(text: &str) -> usize {
        let survey = survey(text);
        let (_, disk) = survey.disk(0).expect("it can be re-enacted");
        disk.left_over.len()
    }

    #[test]
    fn what_was_queued_was_not_there_before_the_trace() {
        for text in [
            // Parts of a bio, and another one that covers the second of them.
            "Q 1 R 0 16\nX 1 R 0 16 8\nG 1 R 0 8\nQ 2 R 4 8\nG 2 R 4 8\nD 2 R 4 8\nG 1 R 8 8\n\
             D 1 R 0 8\nD 1 R 8 8\nC 0 R 0 8",
            // Both directions at the same sectors.
            "Q 1 R 0 8\nG 1 R 0 8\nQ 1 W 0 8\nG 1 W 0 8\nQ 1 W 8 8\nM 1 W 8 8\nD 1 W 0 16\n\
             D 1 R 0 8\nC 0 R 0 8",
            // A bio that was refused, beside a command of its sectors.
            "Q 1 R 0 8\nG 1 R 0 8\nD 1 R 0 8\nQ 2 R 0 8\nC! 2 R 0 8\nC 0 R 0 8",
        ] {
            assert_eq!(left_over(text), 0, "{text}");
        }
        assert_eq!(left_over("D 1 R 0 8\nQ 1 R 8 8\nC 0 R 0 8"), 1);
    }

    #[test]
    fn who_submits_and_who_ends_is_remembered() {
        let mut survey =
            survey("Q 1 R 0 8\nG 1 R 0 8\nD 1 R 0 8\nQ 2 R 8 8\nC 0 R 0 8\nQ 1 R 16 8");
        let at = Event::message(Time(9000), 0, 0, Dev::default());
        survey.message(&at, "bfq2S exit_bfqq: 0000000012345678, 2");
        survey.message(&at, "bfq1S put_queue: 0000000012345678 2");
        assert!(survey.ended().iter().eq(&[2]));
        let (_, disk) = survey.disk(0).expect("it can be re-enacted");
        let last: Vec<(Pid, Time)> = disk.submitters().collect();
        assert_eq!(last, [(1, Time(5000)), (2, Time(3000))]);
    }
}
