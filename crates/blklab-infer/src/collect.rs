// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gathers the bios of a trace, process by process.

use crate::batch::Plugs;
use crate::device::{COMMANDS_MAX, Command};
use crate::loops;
use crate::recorded::{BIOS_MAX, Bio, CannotRepeat, Marks, Process, Recorded, Waiting};
use crate::seen::{Own, Seen};
use blklab_analysis::lifecycle::{BioLife, LifeSink, Lifecycles, RequestLife};
use blklab_analysis::names::Names;
use blklab_trace::{Action, Actions, Digest, Event, Rwbs, TraceSink};
use blklab_types::{BioFlags, Dev, IoPrio, Op, Pid, SECTOR_BYTES, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Longest trace: a hundred years.
const LENGTH_MAX: Span = Span(100 * 365 * 86_400 * 1_000_000_000);

/// A whole number of ticks of every kernel (100, 250, 300 or 1000 per second): times count
/// from such a multiple, so that bios keep their places between ticks, which timers of the
/// block layer depend on.
const TICKS: Span = Span(20_000_000);

/// Names of processes that are kept.
const NAMES_MAX: usize = 1 << 20;

/// Takes the events of a trace; send it all of them, then call [`Collector::finish`].
pub struct Collector {
    lives: Lifecycles<Bios>,
    /// Recordings that had bios before the present one.
    recordings: u64,
    bios_before: usize,
    names: Names,
    digest: Digest,
    seen: Actions,
}

/// All bios.
#[derive(Default)]
struct Bios {
    processes: Vec<Own>,
    places: BTreeMap<Pid, usize>,
    /// Place of the process that was asked for last.
    latest: Option<(Pid, usize)>,
    plugs: Plugs,
    nr_bios: usize,
    devices: BTreeMap<Dev, u64>,
    /// Q events without a direction, beyond the end of any device, and commands passed
    /// through.
    without_direction: u64,
    beyond: u64,
    passed_through: u64,
    commands: Vec<(Dev, Command)>,
}

/// Sectors that a device can have: `loff_t` counts its bytes.
const SECTORS_MAX: u64 = 1 << 54;

impl Bios {
    fn place(&mut self, pid: Pid) -> usize {
        if let Some((known, place)) = self.latest
            && known == pid
        {
            return place;
        }
        let place = *self.places.entry(pid).or_insert_with(|| {
            self.processes.push(Own {
                pid,
                bios: Vec::new(),
            });
            self.processes.len() - 1
        });
        self.latest = Some((pid, place));
        place
    }

    fn queued(&mut self, e: &Event) {
        let flags = e.rwbs.bio_flags();
        let op = match e.rwbs.op() {
            _ if e.rwbs.has(Rwbs::PC) => {
                self.passed_through += 1;
                return;
            }
            // An empty write that asks for a flush, or an empty barrier.
            Some(Op::Write | Op::Flush) if e.nr_sectors() == 0 => Op::Flush,
            Some(op) if e.nr_sectors() > 0 => op,
            // "N" without length: up to 2.6.36 empty barriers look like that.
            None if flags.any(BioFlags::BARRIER | BioFlags::FLUSH) => Op::Flush,
            _ => {
                self.without_direction += 1;
                return;
            }
        };
        // A file's offset could not say where they are.
        if op != Op::Flush && e.end_sector() > SECTORS_MAX {
            self.beyond += 1;
            return;
        }
        if self.nr_bios >= BIOS_MAX {
            self.nr_bios += 1;
            return;
        }
        self.nr_bios += 1;
        *self.devices.entry(e.dev).or_insert(0) += 1;
        let place = self.place(e.pid);
        let plugged = self.plugs.queued(place, &mut self.processes);
        self.processes[place].bios.push(Seen {
            time: e.time,
            done: Time::MAX,
            returned: e.time,
            sector: e.sector,
            nr_sectors: e.nr_sectors() as u32,
            dev: e.dev,
            op,
            flags,
            marks: if plugged {
                Marks::PLUGGED
            } else {
                Marks::default()
            },
            device_plug: Marks::PLUGGED,
        });
    }
}

impl LifeSink for Bios {
    fn bio(&mut self, life: &BioLife) {
        let Some(&place) = self.places.get(&life.pid) else {
            return;
        };
        let bios = &mut self.processes[place].bios;
        let from = bios.partition_point(|b| b.time < life.queue);
        let same_time = bios[from..].iter_mut().take_while(|b| b.time == life.queue);
        let mut fits = same_time.filter(|b| {
            let end = b.sector.saturating_add(u64::from(b.nr_sectors));
            let within = (b.sector..end).contains(&life.sector);
            b.dev == life.dev && (within || b.sector == life.sector)
        });
        let Some(bio) = fits.next() else {
            return;
        };
        if life.sleep.is_some() {
            bio.marks = bio.marks.with(Marks::SLEPT);
        }
        let returned = life.get.max(life.merge.map(|(time, _)| time));
        bio.returned = bio.returned.max(returned.unwrap_or(bio.time));
        // A bio that was split is done when its last part is.
        if let Some(done) = life.complete {
            bio.done = match bio.done {
                Time::MAX => done,
                before => before.max(done),
            };
        }
    }

    fn request(&mut self, life: &RequestLife) {
        let (Some(issue), Some(complete), Some(op)) = (life.issue, life.complete, life.rwbs.op())
        else {
            return;
        };
        if life.rwbs.has(Rwbs::PC) || life.error != 0 || self.commands.len() >= COMMANDS_MAX {
            return;
        }
        let nr_sectors = u32::try_from(life.bytes / SECTOR_BYTES).unwrap_or(u32::MAX);
        let command = Command {
            issue,
            complete,
            sector: life.sector,
            nr_sectors,
            op: if nr_sectors == 0 { Op::Flush } else { op },
        };
        self.commands.push((life.dev, command));
    }
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            lives: Lifecycles::new(Bios::default()),
            recordings: 0,
            bios_before: 0,
            names: Names::with_room(NAMES_MAX),
            digest: Digest::default(),
            seen: Actions::NONE,
        }
    }
}

impl TraceSink for Collector {
    fn event(&mut self, e: &Event) {
        self.digest.event(e);
        self.seen = self.seen.with(e.action);
        let bios = self.lives.sink();
        match e.action {
            Action::Queue => bios.queued(e),
            Action::Plug | Action::Unplug | Action::UnplugTimer | Action::Issue => {
                let place = bios.places.get(&e.pid).copied();
                bios.plugs.event(e.action, place, &mut bios.processes);
            }
            _ => {}
        }
        if bios.nr_bios <= BIOS_MAX {
            self.lives.event(e);
        }
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.names.set(pid, comm);
    }

    fn new_recording(&mut self) {
        let nr_bios = self.lives.sink().nr_bios;
        if nr_bios > self.bios_before {
            self.recordings += 1;
            self.bios_before = nr_bios;
        }
        self.lives.new_recording();
    }
}

impl Collector {
    /// What the trace says. `recorded` are the kinds of events that its recorder wrote down
    /// (see [`TraceHeader`](blklab_trace::TraceHeader)); `dev` is the device to repeat, where
    /// there are several.
    ///
    /// # Errors
    /// If there is nothing to repeat, or it is not clear what.
    pub fn finish(self, recorded: Actions, dev: Option<Dev>) -> Result<Recorded, CannotRepeat> {
        let (mut bios, _) = self.lives.finish();
        if bios.nr_bios > BIOS_MAX {
            return Err(CannotRepeat::TooMany);
        }
        if bios.nr_bios == 0 {
            return Err(CannotRepeat::NoBios(why_none(self.seen, &bios)));
        }
        let last_recording = u64::from(bios.nr_bios > self.bios_before);
        if self.recordings + last_recording > 1 {
            let recordings = self.recordings + last_recording;
            return Err(CannotRepeat::SeveralRecordings(recordings));
        }
        let devices: Vec<(Dev, u64)> = bios.devices.iter().map(|(d, n)| (*d, *n)).collect();
        let dev = match (dev, &devices[..]) {
            (Some(dev), _) if !bios.devices.contains_key(&dev) => {
                return Err(CannotRepeat::NotThatDevice(dev, devices));
            }
            (Some(dev), _) | (None, &[(dev, _)]) => dev,
            (None, _) => return Err(CannotRepeat::SeveralDevices(devices)),
        };
        let shows_plugs = [Action::Plug, Action::Unplug, Action::UnplugTimer]
            .iter()
            .any(|a| self.seen.has(*a) && recorded.has(*a));
        let shows_completions = recorded.has(Action::Complete);
        let of_device = bios.plugs.are_of_device();
        for own in &mut bios.processes {
            own.bios.retain(|b| b.dev == dev);
            own.bios.sort_by_key(|b| b.time);
            if !shows_completions {
                own.bios.iter_mut().for_each(|b| b.done = Time::MAX);
            }
        }
        bios.processes.retain(|own| !own.bios.is_empty());
        bios.processes.sort_by_key(|own| own.bios[0].time);
        let first = bios.processes[0].bios[0].time;
        let begin = Time(first.ns() / TICKS.ns() * TICKS.ns());
        let mut result = Recorded {
            dev,
            shows_plugs,
            digest: self.digest.value(),
            notes: notes(&bios, &devices, dev, shows_plugs),
            commands: commands_of(&bios.commands, dev),
            ..Recorded::default()
        };
        let mut end = first;
        for mut own in std::mem::take(&mut bios.processes) {
            crate::batch::settle(&mut own.bios, shows_plugs, of_device);
            let waits = loops::waits(&own.bios);
            for b in &own.bios {
                end = end.max(b.time).max(b.returned);
                if b.done == Time::MAX {
                    result.nr_unfinished += 1;
                } else {
                    end = end.max(b.done);
                }
            }
            mark_held(&mut own.bios);
            let bios = own.bios.iter().zip(&waits.bios);
            result.processes.push(Process {
                pid: own.pid,
                name: self.names.get(own.pid).map(str::to_owned),
                waiting: waits.kind,
                bios: bios.map(|(seen, wait)| bio(seen, wait, begin)).collect(),
                links: Vec::new(),
                prio: IoPrio::default(),
                group: String::new(),
            });
        }
        result.length = end - first;
        if result.length > LENGTH_MAX {
            return Err(CannotRepeat::TooLong);
        }
        if result.nr_unfinished > 0 && result.has_completions() {
            let n = result.nr_unfinished;
            result
                .notes
                .push(format!("{n} bios have no completion in the trace"));
        }
        Ok(result)
    }
}

fn commands_of(all: &[(Dev, Command)], dev: Dev) -> Vec<Command> {
    let own = all.iter().filter(|(d, _)| *d == dev);
    own.map(|(_, command)| *command).collect()
}

/// A request that comes later than this after Q was waited for: no system call takes as long.
const HELD: Span = Span(50_000);

/// Marks the bios that waited for a request and whose process went on at once when they had it.
fn mark_held(bios: &mut [Seen]) {
    for i in 1..bios.len() {
        let next = bios[i].time;
        let bio = &mut bios[i - 1];
        let waited = bio.returned.since(bio.time);
        if waited >= HELD && next.since(bio.returned.min(next)) < HELD {
            bio.marks = bio.marks.with(Marks::HELD);
        }
    }
}

fn bio(seen: &Seen, wait: &loops::Wait, begin: Time) -> Bio {
    let latency = match seen.done {
        Time::MAX => Span(u64::MAX),
        done => done.since(seen.time),
    };
    Bio {
        at: seen.time.since(begin),
        think: wait.think,
        sector: seen.sector,
        latency,
        room: wait.room,
        nr_sectors: seen.nr_sectors,
        op: seen.op,
        flags: seen.flags,
        marks: seen.marks.with(wait.marks),
    }
}

/// Why a trace has no bios.
fn why_none(seen: Actions, bios: &Bios) -> String {
    if bios.passed_through > 0 {
        return format!(
            "nothing to repeat: {} commands passed through to the device, and no bios",
            bios.passed_through
        );
    }
    if bios.beyond > 0 {
        return "nothing to repeat: all bios are beyond the end of any device".to_owned();
    }
    if seen == Actions::NONE {
        return "nothing to repeat: no events".to_owned();
    }
    let letters: Vec<&str> = seen.iter().map(Action::letters).collect();
    format!(
        "nothing to repeat: no Q events (bios that are queued), only {}; record them, too",
        letters.join(", ")
    )
}

fn notes(bios: &Bios, devices: &[(Dev, u64)], dev: Dev, shows_plugs: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if bios.passed_through > 0 {
        notes.push(format!(
            "{} commands passed through to the device are left out",
            bios.passed_through
        ));
    }
    if bios.without_direction > 0 {
        notes.push(format!(
            "{} bios without direction or length are left out",
            bios.without_direction
        ));
    }
    if bios.beyond > 0 {
        notes.push(format!(
            "{} bios beyond the end of any device are left out",
            bios.beyond
        ));
    }
    let others: BTreeSet<Dev> = devices.iter().map(|d| d.0).filter(|d| *d != dev).collect();
    if !others.is_empty() {
        let n: u64 = devices.iter().filter(|d| d.0 != dev).map(|d| d.1).sum();
        notes.push(format!("{n} bios of other devices are left out"));
    }
    if !shows_plugs {
        notes.push(
            "the trace shows no plugs: bios that a process queued within 20 us are taken for one \
             batch"
                .to_owned(),
        );
    }
    notes
}

/// No process waits for anything until its trace says so.
impl Default for loops::Waits {
    fn default() -> loops::Waits {
        loops::Waits {
            kind: Waiting::Free,
            bios: Vec::new(),
        }
    }
}
