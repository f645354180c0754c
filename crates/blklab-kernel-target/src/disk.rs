// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk: a model of a device that says when requests end, and the data.

use crate::guest::Memory;
use crate::request::{Ask, Description, Request, Status, name_bytes};
use crate::store::Store;
use blklab_device::{CmdId, Command, Device, DeviceCx, DeviceLimits, Done};
use blklab_types::{BioFlags, Error, Op, Slab, Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Size of a disk whose model has no end: 1 TiB.
pub const ENDLESS_SECTORS: u64 = 1 << 31;

/// Sectors of the disk for results: 64 GiB, of which only what is written takes memory.
pub(crate) const RESULTS_SECTORS: u64 = 1 << 27;
/// Segments of a request, where nobody says otherwise.
const SEGMENTS: u32 = 128;

/// What a kernel says by a write to the last pages of its disk for results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The write ends with the second: however long what came before took, what follows
    /// begins at the same place of its timers.
    Align,
    /// From here on the run counts: the models of disks say when commands end. It begins
    /// with a second, too.
    Begin,
    /// What follows does not count.
    End,
}

impl Mark {
    /// All of them, with the commands that write them.
    pub(crate) const ALL: [(&'static str, Mark); 3] = [
        ("align", Mark::Align),
        ("begin", Mark::Begin),
        ("end", Mark::End),
    ];

    /// When the write of one ends that comes now.
    pub(crate) fn ends_at(self, now: Time) -> Time {
        match self {
            Mark::Align | Mark::Begin => Time(now.0.next_multiple_of(SECOND.ns())),
            Mark::End => now,
        }
    }
}

const SECOND: Span = Span::from_s(1);

/// Sectors of a page of marks.
const MARK_SECTORS: u64 = 8;

#[derive(Debug, Default)]
struct Marks(Option<Mark>);

/// How long after the begin of a load its first command comes where the models run it: the
/// processor time of an I/O, if nobody says otherwise. Then a platter stands alike on both.
const FIRST_COMMAND: Span = Span::from_us(1);

/// A disk of a kernel.
pub struct Disk {
    /// Its name, which the kernel shows as its serial number.
    name: String,
    /// When commands end; none: at once.
    model: Option<Box<dyn Device>>,
    store: Store,
    description: Description,
    /// Whether the model says when commands end; else all end at once.
    is_timed: bool,
    /// When the model's clock begins: a little before its first command.
    origin: Option<Time>,
    /// How long before.
    before_first: Span,
    /// What a write to a place of its own says, and what was said last.
    marks: Option<Marks>,
    /// Wake-ups that the model asked for: time, order, token.
    wakes: BinaryHeap<Reverse<(Time, u64, u64)>>,
    wakes_asked: u64,
    in_flight: Slab<CmdId, Option<Request>>,
    /// Requests that it got so far.
    nr_requests: u64,
    /// Requests that end at a time, in order.
    ending: Vec<(Request, Status)>,
    ends_at: Time,
    scratch_wakes: Vec<(Time, u64)>,
    scratch_done: Vec<Done>,
}

impl Disk {
    /// A disk that behaves like a model. Its data are not kept: it reads as zeroes.
    pub fn modelled(name: &str, model: Box<dyn Device>, limits: &DeviceLimits) -> Disk {
        let description = Description {
            capacity_sectors: model.capacity_sectors().unwrap_or(ENDLESS_SECTORS),
            max_segments: limits.max_segments.unwrap_or(SEGMENTS),
            has_flush: limits.has_flush,
            discard: limits.discard,
        };
        Disk::new(name, Some(model), Store::Zeroes, description)
    }

    /// A disk that takes no time and keeps what is written to it.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn kept(name: &str, capacity_sectors: u64) -> Result<Disk, Error> {
        let description = Description {
            capacity_sectors,
            max_segments: SEGMENTS,
            has_flush: false,
            discard: None,
        };
        Ok(Disk::new(name, None, Store::kept()?, description))
    }

    /// The same disk, which keeps what is written from a sector on.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn keeping(mut self, from_sector: u64) -> Result<Disk, Error> {
        self.store = Store::kept_from(from_sector)?;
        Ok(self)
    }

    /// The disk, whose model begins when the machine's script calls `begin`, and is as
    /// fresh then: commands before that end at once, as do new ones after `end`.
    #[must_use]
    pub fn prepared(mut self) -> Disk {
        self.is_timed = false;
        self
    }

    /// The disk, whose model has run for so much longer when its first command comes.
    #[must_use]
    pub fn late(mut self, by: Span) -> Disk {
        self.before_first = FIRST_COMMAND + by;
        self
    }

    /// The disk, whose last pages take marks.
    pub(crate) fn marked(mut self) -> Disk {
        self.marks = Some(Marks::default());
        self
    }

    /// Where marks are written, in pages.
    pub(crate) fn page_of(capacity_sectors: u64, mark: Mark) -> u64 {
        let pages = capacity_sectors / MARK_SECTORS;
        match mark {
            Mark::Align => pages - 3,
            Mark::Begin => pages - 2,
            Mark::End => pages - 1,
        }
    }

    /// What was said since this was asked last.
    pub(crate) fn take_mark(&mut self) -> Option<Mark> {
        self.marks.as_mut()?.0.take()
    }

    /// Follows what was said.
    pub(crate) fn follow(&mut self, mark: Mark) {
        match mark {
            Mark::Align => {}
            Mark::Begin => self.is_timed = true,
            Mark::End => self.is_timed = false,
        }
    }

    /// Memory that its data take.
    pub fn kept_bytes(&self) -> u64 {
        self.store.kept_bytes()
    }

    fn new(
        name: &str,
        model: Option<Box<dyn Device>>,
        store: Store,
        description: Description,
    ) -> Disk {
        Disk {
            name: name.to_owned(),
            model,
            store,
            description,
            is_timed: true,
            origin: None,
            before_first: FIRST_COMMAND,
            marks: None,
            wakes: BinaryHeap::new(),
            wakes_asked: 0,
            in_flight: Slab::default(),
            nr_requests: 0,
            ending: Vec::new(),
            ends_at: Time::ZERO,
            scratch_wakes: Vec::new(),
            scratch_done: Vec::new(),
        }
    }

    /// What was written to it, if that is kept.
    pub fn data(&self) -> Option<&std::fs::File> {
        self.store.file()
    }

    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// When it has to be called next.
    pub(crate) fn next(&self) -> Option<Time> {
        let wake = self.wakes.peek().map(|Reverse((time, _, _))| *time);
        if self.ending.is_empty() {
            return wake;
        }
        Some(wake.map_or(self.ends_at, |wake| wake.min(self.ends_at)))
    }

    /// Requests that it got so far.
    pub(crate) fn nr_requests(&self) -> u64 {
        self.nr_requests
    }

    /// Takes a request.
    ///
    /// # Errors
    /// If its buffers are not in memory.
    pub(crate) fn submit(&mut self, now: Time, memory: &Memory, r: Request) -> Result<(), Error> {
        let command = match &r.ask {
            Ask::Refused(status) => {
                let status = *status;
                self.end(now, r, status);
                return Ok(());
            }
            Ask::Name(to) => {
                let name = name_bytes(&self.name);
                if let Some(first) = to.first() {
                    let len = name.len().min(first.len as usize);
                    memory.write(first.address, &name[..len])?;
                }
                self.end(now, r, Status::Ok);
                return Ok(());
            }
            Ask::Device {
                op,
                sector,
                nr_sectors,
                data,
            } => {
                let command = Command {
                    id: CmdId::default(),
                    op: *op,
                    flags: BioFlags::NONE,
                    sector: *sector,
                    nr_sectors: *nr_sectors,
                };
                self.nr_requests += 1;
                let mark = self.mark_at(*sector).filter(|_| *op == Op::Write);
                if let Some(mark) = mark {
                    self.marks = Some(Marks(Some(mark)));
                    self.end(mark.ends_at(now), r, Status::Ok);
                    return Ok(());
                }
                if command.exceeds(self.description.capacity_sectors) {
                    self.end(now, r, Status::Failed);
                    return Ok(());
                }
                match op {
                    Op::Read => self.store.read(memory, *sector, data)?,
                    Op::Write => self.store.write(memory, *sector, data)?,
                    Op::Discard => self.store.discard(*sector, *nr_sectors)?,
                    Op::Flush => {}
                }
                command
            }
        };
        if self.model.is_none() || !self.is_timed {
            self.end(now, r, Status::Ok);
            return Ok(());
        }
        let first = Time(now.0.saturating_sub(self.before_first.ns()));
        self.origin.get_or_insert(first);
        let id = self.in_flight.insert(Some(r));
        let command = Command { id, ..command };
        self.call(now, |model, cx| model.submit(cx, &command));
        Ok(())
    }

    /// What a write there says.
    fn mark_at(&self, sector: u64) -> Option<Mark> {
        self.marks.as_ref()?;
        let page = sector / MARK_SECTORS;
        let capacity = self.description.capacity_sectors;
        let mut all = Mark::ALL.into_iter().map(|(_, mark)| mark);
        all.find(|mark| Disk::page_of(capacity, *mark) == page)
    }

    /// Does what is due now and returns the requests that end.
    pub(crate) fn due(&mut self, now: Time) -> Vec<(Request, Status)> {
        while let Some(Reverse((time, _, token))) = self.wakes.peek().copied()
            && time <= now
        {
            self.wakes.pop();
            self.call(now, |model, cx| model.wake(cx, token));
        }
        if self.ends_at > now {
            return Vec::new();
        }
        std::mem::take(&mut self.ending)
    }

    /// Ends a request at a time, and not before those that end already.
    fn end(&mut self, at: Time, request: Request, status: Status) {
        self.ends_at = self.ends_at.max(at);
        self.ending.push((request, status));
    }

    fn call(&mut self, now: Time, f: impl FnOnce(&mut dyn Device, &mut DeviceCx<'_>)) {
        let Some(model) = &mut self.model else {
            return;
        };
        let origin = self.origin.unwrap_or(Time::ZERO);
        let mut cx = DeviceCx {
            now: Time(now.0.saturating_sub(origin.0)),
            wakes: &mut self.scratch_wakes,
            done: &mut self.scratch_done,
        };
        f(model.as_mut(), &mut cx);
        for (time, token) in self.scratch_wakes.drain(..) {
            let time = Time(time.0.saturating_add(origin.0));
            self.wakes.push(Reverse((time, self.wakes_asked, token)));
            self.wakes_asked += 1;
        }
        for done in std::mem::take(&mut self.scratch_done) {
            let request = self.in_flight.remove(done.id).take();
            let request = request.expect("a model ends a command once");
            let status = match done.error {
                0 => Status::Ok,
                _ => Status::Failed,
            };
            self.end(now, request, status);
        }
    }
}
