// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of drivers as I/O, where a trace has no events of the block layer: who records
//! `nvme_setup_cmd` and `nvme_complete_rq` alone has D and C of every command.
//!
//! Whether a trace is such is told at its beginning: an event of the block layer comes before the
//! driver's event of the same request. Blocks are taken to be of 512 bytes where no event says
//! their size. Directions are those of the commands; flags (sync, metadata) no event shows.

use crate::disks::Disks;
use crate::format::Reader;
use crate::kernel::EIO;
use crate::{FormatError, ReadCounts};
use blklab_trace::{
    Action, Actions, Event, Item, KernelEvent, MmcRequest, NvmeCommand, Rwbs, ScsiCommand,
    TraceHeader, TraceSink, TraceSource, Tracepoint,
};
use blklab_types::{Dev, Pid, SECTOR_BYTES, Time};
use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};

/// Formats that have events of drivers.
pub(crate) const FORMATS: [&str; 5] = ["ftrace", "trace.dat", "ctf", "lttng", "perfetto"];

/// So many items behind the first event of a driver are looked at.
const AHEAD_MAX: usize = 64;
/// So many items are looked at before one.
const BEFORE_MAX: usize = 4096;

/// Commands followed at a time.
const OPEN_MAX: usize = 1 << 16;

/// Where MMC's data go (`MMC_DATA_*`, include/linux/mmc/core.h), and the switch that empties the
/// cache (`MMC_SWITCH`, `EXT_CSD_FLUSH_CACHE`, include/linux/mmc/mmc.h).
const MMC_DATA_WRITE: u32 = 1 << 8;
const MMC_DATA_READ: u32 = 1 << 9;
const MMC_SWITCH: u32 = 6;
const MMC_FLUSH_CACHE: u32 = 32;

/// An item that is kept.
#[derive(Debug)]
enum Kept {
    Event(Event),
    Message(Event, String),
    Kernel(KernelEvent),
    Stack(Time, Pid, String),
    Process(Time, Pid, String),
    NewRecording,
}

impl Kept {
    fn new(item: Item<'_>) -> Kept {
        match item {
            Item::Event(e) => Kept::Event(e),
            Item::Message(e, text) => Kept::Message(e, text.to_owned()),
            Item::Kernel(e) => Kept::Kernel(e),
            Item::Stack {
                time,
                pid,
                functions,
            } => Kept::Stack(time, pid, functions.to_owned()),
            Item::Process { time, pid, comm } => Kept::Process(time, pid, comm.to_owned()),
            Item::NewRecording => Kept::NewRecording,
        }
    }

    fn item(&self) -> Item<'_> {
        match self {
            Kept::Event(e) => Item::Event(*e),
            Kept::Message(e, text) => Item::Message(*e, text),
            Kept::Kernel(e) => Item::Kernel(*e),
            Kept::Stack(time, pid, functions) => Item::Stack {
                time: *time,
                pid: *pid,
                functions,
            },
            Kept::Process(time, pid, comm) => Item::Process {
                time: *time,
                pid: *pid,
                comm,
            },
            Kept::NewRecording => Item::NewRecording,
        }
    }
}

/// A reader that makes I/O of drivers' commands where there is no other.
#[derive(Debug)]
pub(crate) struct DriverReader {
    inner: Box<dyn Reader>,
    /// What was read to see what the trace has.
    ahead: VecDeque<Kept>,
    given: Option<Kept>,
    io: Option<DriverIo>,
    pending: Option<Event>,
    /// Events that were made so far.
    made: u64,
    /// Whether the end was reached.
    has_ended: bool,
    /// What was counted in all, with the events that were made.
    counts: OnceCell<ReadCounts>,
}

impl DriverReader {
    /// Looks at the beginning of a trace.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn new(mut inner: Box<dyn Reader>) -> Result<DriverReader, FormatError> {
        let mut ahead = VecDeque::new();
        let mut since_command = 0;
        let mut is_alone = false;
        while since_command < AHEAD_MAX && ahead.len() < BEFORE_MAX {
            let Some(item) = inner.next_item()? else {
                break;
            };
            if let Item::Event(_) = item {
                is_alone = false;
                ahead.push_back(Kept::new(item));
                break;
            }
            if let Item::Kernel(e) = &item {
                is_alone |= begins(e);
            }
            since_command += usize::from(is_alone);
            ahead.push_back(Kept::new(item));
        }
        let header = inner.header().cloned().unwrap_or_default();
        Ok(DriverReader {
            io: is_alone.then(|| DriverIo::new(&header)),
            inner,
            ahead,
            given: None,
            pending: None,
            made: 0,
            has_ended: false,
            counts: OnceCell::new(),
        })
    }
}

/// Whether a driver gets a command with this event.
fn begins(e: &KernelEvent) -> bool {
    matches!(
        e.point,
        Tracepoint::NvmeSetup { .. }
            | Tracepoint::ScsiStart(_)
            | Tracepoint::UfsCommand { is_sent: true, .. }
            | Tracepoint::MmcStart { .. }
    )
}

impl TraceSource for DriverReader {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        if let Some(event) = self.pending.take() {
            self.made += 1;
            return Ok(Some(Item::Event(event)));
        }
        if let Some(kept) = self.ahead.pop_front() {
            let given = self.given.insert(kept);
            if let (Kept::Kernel(e), Some(io)) = (&*given, &mut self.io) {
                self.pending = io.event(e);
            }
            return Ok(Some(given.item()));
        }
        let item = self.inner.next_item()?;
        match &item {
            Some(Item::Kernel(e)) => {
                self.pending = self.io.as_mut().and_then(|io| io.event(e));
            }
            // The block layer speaks for itself after all.
            Some(Item::Event(_)) => self.io = None,
            Some(_) => {}
            None => self.has_ended = true,
        }
        Ok(item)
    }

    fn send_all(&mut self, sink: &mut dyn TraceSink) -> Result<(), FormatError> {
        while self.io.is_some() || self.pending.is_some() || !self.ahead.is_empty() {
            let Some(item) = self.next_item()? else {
                return Ok(());
            };
            item.send_to(sink);
        }
        let sent = self.inner.send_all(sink);
        self.has_ended = true;
        sent
    }
}

impl Reader for DriverReader {
    fn counts(&self) -> &ReadCounts {
        let counts = self.inner.counts();
        if !self.has_ended || self.made == 0 {
            return counts;
        }
        self.counts.get_or_init(|| ReadCounts {
            events: counts.events + self.made,
            ..counts.clone()
        })
    }

    fn header(&self) -> Option<&TraceHeader> {
        match &self.io {
            Some(io) => Some(&io.disks.header),
            None => self.inner.header(),
        }
    }
}

/// Commands under way, as the D that they are.
#[derive(Debug)]
struct DriverIo {
    disks: Disks,
    open: HashMap<Key, Event>,
}

/// Which command.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Nvme(u16, u16, u16),
    Scsi([u16; 4], u8, u64),
    Ufs(u32),
    Mmc(u16, i32),
}

fn nvme_key(c: &NvmeCommand) -> Key {
    Key::Nvme(c.ctrl, c.qid, c.tag)
}

fn scsi_key(c: &ScsiCommand) -> Key {
    Key::Scsi([c.host, c.channel, c.id, c.lun], c.opcode, c.lba)
}

fn mmc_key(r: &MmcRequest) -> Key {
    Key::Mmc(r.host, r.tag)
}

/// What a command does.
struct Command {
    key: Key,
    disk: String,
    rwbs: Rwbs,
    sector: u64,
    bytes: u64,
}

impl DriverIo {
    fn new(header: &TraceHeader) -> DriverIo {
        let mut disks = Disks::new(Actions::new(&[Action::Issue, Action::Complete]));
        disks.header.kernel.clone_from(&header.kernel);
        disks.header.origin.clone_from(&header.origin);
        disks.header.nr_cpus = header.nr_cpus;
        DriverIo {
            disks,
            open: HashMap::new(),
        }
    }

    /// The event of the block layer that goes with one of a driver.
    fn event(&mut self, e: &KernelEvent) -> Option<Event> {
        match &e.point {
            Tracepoint::NvmeComplete {
                command, status, ..
            } => self.end(e, &nvme_key(command), if *status == 0 { 0 } else { EIO }),
            Tracepoint::ScsiDone { command, result } => self.end(
                e,
                &scsi_key(command),
                if result.is_good() { 0 } else { EIO },
            ),
            Tracepoint::ScsiRefused { command, .. } => {
                let again = self.end(e, &scsi_key(command), 0)?;
                let action = Action::Requeue;
                Some(Event { action, ..again })
            }
            Tracepoint::UfsCommand {
                is_sent: false,
                tag,
                ..
            } => self.end(e, &Key::Ufs(*tag), 0),
            Tracepoint::MmcDone { request, error } => self.end(e, &mmc_key(request), *error),
            _ => self.begin(e, command(e)?),
        }
    }

    fn begin(&mut self, e: &KernelEvent, command: Command) -> Option<Event> {
        let event = Event {
            time: e.time,
            sector: command.sector,
            arg: 0,
            bytes: command.bytes.try_into().ok()?,
            pid: e.pid,
            dev: self.disks.named(command.disk.as_bytes()),
            from_dev: Dev::default(),
            error: 0,
            cpu: e.cpu,
            rwbs: command.rwbs,
            action: Action::Issue,
        };
        if self.open.len() < OPEN_MAX {
            self.open.insert(command.key, event);
        }
        Some(event)
    }

    fn end(&mut self, e: &KernelEvent, key: &Key, error: u16) -> Option<Event> {
        let begun = self.open.remove(key)?;
        Some(Event {
            time: e.time,
            pid: e.pid,
            cpu: e.cpu,
            error,
            action: Action::Complete,
            ..begun
        })
    }
}

/// The command that a driver gets with an event; none if it moves no data and empties no cache.
fn command(e: &KernelEvent) -> Option<Command> {
    match &e.point {
        Tracepoint::NvmeSetup {
            command,
            opcode,
            slba,
            blocks,
        } if command.qid > 0 => {
            let rwbs = match opcode {
                0 => Rwbs::FLUSH,
                1 | 8 => Rwbs::WRITE,
                2 => Rwbs::READ,
                9 => Rwbs::DISCARD,
                _ => return None,
            };
            Some(Command {
                key: nvme_key(command),
                disk: format!("nvme{}", command.ctrl),
                rwbs,
                sector: *slba,
                bytes: length(rwbs, u64::from(*blocks) * SECTOR_BYTES),
            })
        }
        Tracepoint::ScsiStart(c) => {
            let rwbs = of_opcode(c.opcode)?;
            Some(Command {
                key: scsi_key(c),
                disk: format!("{}:{}:{}:{}", c.host, c.channel, c.id, c.lun),
                rwbs,
                sector: c.lba,
                bytes: length(rwbs, u64::from(c.blocks) * SECTOR_BYTES),
            })
        }
        Tracepoint::UfsCommand {
            is_sent: true,
            tag,
            lba,
            opcode,
            bytes,
        } => {
            let rwbs = of_opcode(*opcode)?;
            Some(Command {
                key: Key::Ufs(*tag),
                disk: "ufs".to_owned(),
                rwbs,
                sector: *lba,
                bytes: length(rwbs, u64::from(*bytes)),
            })
        }
        Tracepoint::MmcStart {
            request,
            opcode,
            arg,
            block,
            blocks,
            block_bytes,
            data_flags,
        } => {
            let rwbs = if data_flags & MMC_DATA_READ != 0 {
                Rwbs::READ
            } else if data_flags & MMC_DATA_WRITE != 0 {
                Rwbs::WRITE
            } else if *opcode == MMC_SWITCH && arg >> 16 & 0xff == MMC_FLUSH_CACHE {
                Rwbs::FLUSH
            } else {
                return None;
            };
            Some(Command {
                key: mmc_key(request),
                disk: format!("mmc{}", request.host),
                rwbs,
                sector: u64::from(if *block > 0 { *block } else { *arg }),
                bytes: length(rwbs, u64::from(*blocks) * u64::from(*block_bytes)),
            })
        }
        _ => None,
    }
}

/// How much a command moves: a flush nothing, any other at least a sector.
fn length(rwbs: Rwbs, bytes: u64) -> u64 {
    if rwbs == Rwbs::FLUSH {
        0
    } else {
        bytes.max(SECTOR_BYTES)
    }
}

/// What a command of SCSI or UFS does to data (SBC-4).
fn of_opcode(opcode: u8) -> Option<Rwbs> {
    Some(match opcode {
        0x08 | 0x28 | 0xa8 | 0x88 => Rwbs::READ,
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e | 0x41 | 0x93 => Rwbs::WRITE,
        0x35 | 0x91 => Rwbs::FLUSH,
        0x42 => Rwbs::DISCARD,
        _ => return None,
    })
}
