// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of flash drives, and what is computed from them once.

use super::collect::Collect;
use super::gc;
use super::slc::SlcSpec;
use crate::error::DeviceError;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{SECTOR_BYTES, Span, Unit};

/// Bytes of a slot: the unit of the write buffer and of the mapping.
pub(super) const SLOT_BYTES: u64 = 4096;
/// Sectors of a slot.
pub(super) const SLOT_SECTORS: u64 = SLOT_BYTES / SECTOR_BYTES;

const TIME_US: Kind = Kind::Time {
    unit_ns: 1_000,
    max_ns: 1_000_000_000,
};
const RATE: Kind = Kind::Real {
    min: 1.0,
    max: 100_000.0,
};

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("capacity_sectors", Kind::Sectors { min: 10_000, max: 1 << 36 }, "3907029168", "size"),
    param("channels", Kind::Count { min: 1, max: 256 }, "8", "buses between controller and flash"),
    param("ways", Kind::Count { min: 1, max: 64 }, "4", "chips on a channel"),
    param("dies", Kind::Count { min: 1, max: 64 }, "2", "dies of a chip; each does one thing at a time"),
    param("planes", Kind::Count { min: 1, max: 16 }, "2", "planes of a die, programmed and erased together"),
    param("page_bytes", Kind::Bytes { min: SLOT_BYTES, max: 1 << 20 }, "8KiB", "page of a plane; a multiple of 4 KiB"),
    param("pages_per_program", Kind::Count { min: 1, max: 4 }, "1", "pages of a plane programmed at once: 1, or the bits of a cell (3 in TLC)"),
    param("stripe_dies", Kind::Count { min: 1, max: 4096 }, "1", "dies that programs of the host go to at once, all if there are fewer: data wait in the buffer until there is one for each, or for a flush"),
    param("pages_per_block", Kind::Count { min: 1, max: 1 << 16 }, "256", "pages erased together"),
    param("read_us", TIME_US, "60", "time from the cells to the register of the die, first kind of page"),
    param("read_middle_us", TIME_US, "", "the same for the second of three kinds by turns, of which read_slow_us is the third; two kinds if not given"),
    param("read_slow_us", TIME_US, "", "the same for the last kind of page; read_us if not given"),
    param("read_large_us", TIME_US, "0", "more time from the cells in a read of more than 4 KiB"),
    param("program_us", TIME_US, "950", "time from the registers of all planes to the cells"),
    param("erase_us", TIME_US, "3800", "time to erase a block in all planes"),
    param("suspend_program", Kind::Switch, "on", "a read suspends a program"),
    param("suspend_program_us", TIME_US, "100", "time to suspend; one that ends sooner is not suspended"),
    param("suspend_erase", Kind::Switch, "on", "a read suspends an erase"),
    param("suspend_erase_us", TIME_US, "700", "time to suspend; one that ends sooner is not suspended"),
    param("suspend_max", Kind::Count { min: 0, max: 1000 }, "3", "how often one program or erase can be suspended"),
    param("reads_first", Kind::Switch, "on", "reads go before programs that wait for the same die; off: in order of arrival"),
    param("read_burst", Kind::Count { min: 1, max: 1 << 20 }, "16", "reads that a die serves in a row while other work waits, which arrived before them if reads_first is off"),
    param("channel_mb_per_s", RATE, "533", "rate of a channel in 10^6 B/s").in_unit(Unit::MbPerS),
    param("link_mb_per_s", RATE, "3200", "effective rate of the host link in 10^6 B/s").in_unit(Unit::MbPerS),
    param("link", Kind::Choice(&["full_duplex", "half_duplex"]), "full_duplex", "whether reads and writes share that rate"),
    param("command_us", TIME_US, "2.04", "controller time of a command, one at a time: its inverse is the maximum command rate"),
    param("read_overhead_us", TIME_US, "14", "firmware time of a read of up to 4 KiB, in parallel with any number of others"),
    param("read_large_overhead_us", TIME_US, "", "the same for a larger one; read_overhead_us if not given"),
    param("read_large_mb_per_s", RATE, "", "rate that reads of more than 4 KiB share inside the drive, in 10^6 B/s; no limit if not given").in_unit(Unit::MbPerS),
    param("read_slots", Kind::Count { min: 0, max: 65_536 }, "0", "reads that the drive works on at a time; others wait in its queues, oldest first; 0: all"),
    param("write_command_us", TIME_US, "", "controller time of a write that replaces data (state other than fresh), beside other commands; command_us before them if not given"),
    param("write_overhead_us", TIME_US, "16.5", "firmware time of a write, after its data are in the buffer"),
    param("flush_queued", Kind::Switch, "on", "a flush is a command beside others; off: it waits for those in flight, and holds back those behind it, as on SATA"),
    param("flush_overhead_us", TIME_US, "50", "firmware time of a flush, after everything is in the flash"),
    param("discard_overhead_us", TIME_US, "20", "firmware time of a discard"),
    param("buffer_bytes", Kind::Bytes { min: SLOT_BYTES, max: 1 << 30 }, "16MiB", "write buffer; at least two programs of a die, or two stripes"),
    param("power_loss_protection", Kind::Switch, "on", "the buffer survives a loss of power: no flush is needed, FUA costs nothing"),
    param("spare_pct", Kind::Real { min: 1.0, max: 400.0 }, "9.95", "over-provisioning: flash beyond the capacity, in percent of it").in_unit(Unit::Percent),
    param("state", Kind::Choice(&["steady", "fresh", "used", "full"]), "steady", "fresh: as after a discard of everything; used: filled_pct of it written at random, long enough for that to be steady; full (or steady): all of it"),
    param("filled_pct", Kind::Real { min: 1.0, max: 100.0 }, "60", "share of the capacity that holds data in state=used, in percent; the rest is spare").in_unit(Unit::Percent),
    param("gc_burst_bytes", Kind::Bytes { min: 0, max: 1 << 40 }, "0", "collecting begins when so much is to be moved, ends when all of it is, and programs of the host wait meanwhile; 0: a die moves what it owes before its next program"),
    param("gc_dies", Kind::Count { min: 0, max: 4096 }, "0", "dies that move data at a time; 0: all"),
    param("gc_suspend", Kind::Switch, "on", "reads go between the steps of a move, and suspend its program"),
    param("slc_bytes", Kind::Bytes { min: 0, max: 1 << 50 }, "0", "data that have room in the part that is written with one bit per cell first; 0: there is none"),
    param("slc_program_us", TIME_US, "300", "program_us there"),
    param("slc_when_full", Kind::Choice(&["direct", "fold"]), "direct", "direct: what has no room is programmed with all bits at once; fold: it waits until as much has been folded"),
    param("slc_state", Kind::Choice(&["empty", "full"]), "empty", "that part at the begin"),
    param("fold_idle_ms", Kind::Time { unit_ns: 1_000_000, max_ns: 3_600_000_000_000 }, "500", "time without a write after which dies fold: read what is there and program it with all bits per cell"),
    param("layout", Kind::Choice(&["striped", "scattered"]), "striped", "striped: data lie as written in order; scattered: each 4 KiB on a die of its own, as after random writes"),
    param("streams", Kind::Count { min: 1, max: 1024 }, "16", "largest number of sequential write streams that are recognised"),
];

/// What a drive has been through before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Used,
    Full,
}

impl State {
    /// By the place of the word in the list of `state`.
    fn chosen(values: &Values) -> State {
        match values.int("state") {
            1 => State::Fresh,
            2 => State::Used,
            _ => State::Full,
        }
    }
}

/// The times of a die and its channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// Kinds of pages, which follow each other on a die.
    pub(super) read: [Span; 3],
    /// More in a read of more than 4 KiB.
    pub(super) read_large: Span,
    /// How many kinds there are.
    pub(super) kinds: u64,
    /// Time to read the cells of all that a die programs at once.
    pub(super) move_read: Span,
    pub(super) program: Span,
    /// With one bit per cell.
    pub(super) slc_program: Span,
    pub(super) erase: Span,
    /// Until a program has stopped; none: it never does.
    pub(super) suspend_program: Option<Span>,
    pub(super) suspend_erase: Option<Span>,
    pub(super) suspend_max: u32,
    /// Reads go between the steps of a move.
    pub(super) gc_suspend: bool,
    pub(super) reads_first: bool,
    pub(super) read_burst: u32,
    pub(super) channel: Rate,
    /// Bytes that a die programs at once.
    pub(super) unit_bytes: u64,
    /// Programs until a block is full.
    pub(super) units_per_block: u32,
}

/// A rate in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate(u64);

impl Rate {
    pub(super) fn from_mb_per_s(mb_per_s: f64) -> Rate {
        Rate((mb_per_s * 1e6).round() as u64)
    }

    /// Time of so many bytes, rounded to the nanosecond.
    pub(super) fn time(self, bytes: u64) -> Span {
        Span((bytes * 1_000_000_000 + self.0 / 2) / self.0)
    }
}

/// A drive as its parameters describe it.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) capacity_sectors: u64,
    pub(super) channels: usize,
    /// All dies of the drive.
    pub(super) dies: usize,
    pub(super) page_sectors: u64,
    /// Slots that a die programs at once.
    pub(super) unit_slots: u32,
    pub(super) timing: Timing,
    pub(super) link: Rate,
    pub(super) half_duplex: bool,
    pub(super) command: Span,
    /// Firmware time of a read: up to 4 KiB, larger.
    pub(super) read_overhead: [Span; 2],
    /// What reads of more than 4 KiB share.
    pub(super) read_large: Option<Rate>,
    /// Most reads at a time.
    pub(super) read_slots: u32,
    /// Controller time of a write, if it has one of its own.
    pub(super) write_command: Option<Span>,
    pub(super) write_overhead: Span,
    pub(super) flush_queued: bool,
    pub(super) flush_overhead: Span,
    pub(super) discard_overhead: Span,
    pub(super) buffer_slots: u32,
    pub(super) protected: bool,
    /// Each slot lies on a page of its own.
    pub(super) scattered: bool,
    /// Units that are programmed together, each by a die.
    pub(super) stripe_dies: usize,
    /// Slots of flash: capacity and spare.
    pub(super) flash_slots: u64,
    /// Slots that can be written before garbage has to be collected.
    pub(super) credit_slots: u64,
    /// Pages moved for each random page written; 16 bits behind the point.
    pub(super) moves: u64,
    pub(super) collect: Collect,
    pub(super) slc: SlcSpec,
    pub(super) streams: usize,
}

impl Spec {
    pub(super) fn from_values(values: &Values) -> Result<Spec, DeviceError> {
        let page_bytes = values.int("page_bytes");
        if !page_bytes.is_multiple_of(SLOT_BYTES) {
            return Err(values.bad("page_bytes", "a multiple of 4 KiB".into()));
        }
        let per_program = values.int("pages_per_program");
        let unit_bytes = page_bytes * values.int("planes") * per_program;
        let buffer_bytes = values.int("buffer_bytes");
        let dies = values.int("channels") * values.int("ways") * values.int("dies");
        let stripe_dies = values.int("stripe_dies").min(dies);
        let least = 2 * stripe_dies * unit_bytes;
        if buffer_bytes < least {
            let what = match stripe_dies {
                1 => "two programs of a die",
                _ => "two stripes",
            };
            return Err(values.bad("buffer_bytes", format!("at least {least} bytes: {what}")));
        }
        let capacity_sectors = values.int("capacity_sectors");
        let time = |name| Span(values.int(name));
        let time_or = |name, other| Span(values.opt(name).unwrap_or(values.int(other)));
        let spare = values.real("spare_pct") / 100.0;
        let flash_slots = (capacity_sectors as f64 / SLOT_SECTORS as f64 * (1.0 + spare)) as u64;
        let state = State::chosen(values);
        let filled = match state {
            State::Used => values.real("filled_pct") / 100.0,
            State::Fresh | State::Full => 1.0,
        };
        let flash_bytes = flash_slots * SLOT_BYTES;
        if values.int("slc_bytes") > flash_bytes {
            let most = format!("at most {flash_bytes} bytes: all of the flash");
            return Err(values.bad("slc_bytes", most));
        }
        let spare_bytes = flash_bytes - (capacity_sectors as f64 * filled) as u64 * SECTOR_BYTES;
        if values.int("gc_burst_bytes") > spare_bytes {
            let most = format!("at most {spare_bytes} bytes: what is spare");
            return Err(values.bad("gc_burst_bytes", most));
        }
        let (fast, slow) = (time("read_us"), time_or("read_slow_us", "read_us"));
        let (read, kinds) = match values.opt("read_middle_us") {
            Some(middle) => ([fast, Span(middle), slow], 3),
            None => ([fast, slow, slow], 2),
        };
        Ok(Spec {
            capacity_sectors,
            channels: values.int("channels") as usize,
            dies: dies as usize,
            page_sectors: page_bytes / SECTOR_BYTES,
            unit_slots: (unit_bytes / SLOT_BYTES) as u32,
            timing: Timing {
                read,
                read_large: time("read_large_us"),
                kinds,
                move_read: match per_program {
                    1 => slow,
                    n => (0..n)
                        .map(|i| read[(i % kinds) as usize])
                        .fold(Span(0), |sum, time| sum + time),
                },
                program: time("program_us"),
                slc_program: time("slc_program_us"),
                erase: time("erase_us"),
                suspend_program: (values.on("suspend_program")).then(|| time("suspend_program_us")),
                suspend_erase: values.on("suspend_erase").then(|| time("suspend_erase_us")),
                suspend_max: values.count("suspend_max"),
                gc_suspend: values.on("gc_suspend"),
                reads_first: values.on("reads_first"),
                read_burst: values.count("read_burst"),
                channel: Rate::from_mb_per_s(values.real("channel_mb_per_s")),
                unit_bytes,
                units_per_block: values.count("pages_per_block").div_ceil(per_program as u32),
            },
            link: Rate::from_mb_per_s(values.real("link_mb_per_s")),
            half_duplex: values.int("link") == 1,
            command: time("command_us"),
            read_overhead: [
                time("read_overhead_us"),
                time_or("read_large_overhead_us", "read_overhead_us"),
            ],
            read_large: values
                .opt_real("read_large_mb_per_s")
                .map(Rate::from_mb_per_s),
            read_slots: match values.count("read_slots") {
                0 => u32::MAX,
                n => n,
            },
            write_command: match state {
                State::Fresh => None,
                State::Used | State::Full => values.opt("write_command_us").map(Span),
            },
            write_overhead: time("write_overhead_us"),
            flush_queued: values.on("flush_queued"),
            flush_overhead: time("flush_overhead_us"),
            discard_overhead: time("discard_overhead_us"),
            buffer_slots: (buffer_bytes / SLOT_BYTES) as u32,
            protected: values.on("power_loss_protection"),
            scattered: values.int("layout") == 1,
            stripe_dies: stripe_dies as usize,
            flash_slots,
            credit_slots: match state {
                State::Used | State::Full => 0,
                State::Fresh => flash_slots,
            },
            moves: gc::moves((1.0 + spare) / filled - 1.0),
            collect: Collect::new(
                values.int("gc_burst_bytes").div_ceil(unit_bytes),
                values.count("gc_dies"),
            ),
            slc: SlcSpec {
                units: values.int("slc_bytes").div_ceil(unit_bytes),
                waits: values.int("slc_when_full") == 1,
                idle: time("fold_idle_ms"),
                full: values.int("slc_state") == 1,
            },
            streams: values.int("streams") as usize,
        })
    }
}
