// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bios of a trace, sorted into what single fio jobs do.

use crate::most_under_way;
use crate::recorded::{Bio, Marks, Process, Recorded, Waiting};
use blklab_types::{BioFlags, Op, SECTOR_BYTES, Span};

/// Bios that a system call submits follow each other within this time.
const AT_ONCE: Span = Span(50_000);
/// A bio that was cut at the limit of bios is at least so long, in sectors: 64 KiB.
const CUT_SECTORS: u32 = 128;
/// Longest I/O that is put together again, in sectors: 16 MiB.
const UNIT_SECTORS_MAX: u64 = 32_768;
/// A write that the page cache makes begins at most so far behind the one before, in
/// sectors, if it is of the same file: 1 MiB.
const NEAR_SECTORS: u64 = 2048;
/// Places that are written at a time.
const WRITERS_MAX: usize = 64;
/// Share of the bytes of buffered writes that a place needs for a section of its own.
const WRITER_SHARE: u64 = 20;

/// How the data of a stream reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// By direct I/O.
    Direct,
    /// Through the page cache.
    Buffered,
}

/// What one fio job does.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) waiting: Waiting,
    pub(super) path: Path,
    pub(super) units: Vec<Unit>,
    /// Empty flushes among them.
    pub(super) nr_flushes: u64,
    /// Bios that had to sleep for a request.
    pub(super) nr_slept: u64,
    /// Bios that had to wait for a request and were followed at once.
    pub(super) nr_held: u64,
    /// Bios that the units were made of.
    pub(super) nr_bios: u64,
}

/// What one system call moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) at: Span,
    /// When its last bio was done, if that is known.
    pub(super) done: Option<Span>,
    pub(super) think: Span,
    pub(super) woke: bool,
    pub(super) sector: u64,
    pub(super) nr_sectors: u64,
    pub(super) op: Op,
    pub(super) flags: BioFlags,
}

impl Unit {
    fn new(b: &Bio) -> Unit {
        Unit {
            at: b.at,
            done: b.latency().map(|l| b.at + l),
            think: b.think,
            woke: b.marks.has(Marks::WOKE),
            sector: b.sector,
            nr_sectors: u64::from(b.nr_sectors),
            op: b.op,
            flags: b.flags,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.sector.saturating_add(self.nr_sectors)
    }
}

impl Stream {
    fn new(name: String, waiting: Waiting, path: Path) -> Stream {
        Stream {
            name,
            waiting,
            path,
            units: Vec::new(),
            nr_flushes: 0,
            nr_slept: 0,
            nr_held: 0,
            nr_bios: 0,
        }
    }

    /// When it begins.
    pub(super) fn begin(&self) -> Span {
        self.units.first().map_or(Span::ZERO, |u| u.at)
    }

    /// Most of its I/Os that were under way at a time.
    pub(super) fn most_under_way(&self) -> usize {
        let ended = |u: &Unit| Some([u.at.ns(), u.done?.ns()]);
        most_under_way(self.units.iter().filter_map(ended))
    }

    /// Whether most of its submissions waited for a request, others of its I/Os were under
    /// way, and it waited for none of those: it would have had more than there were requests.
    pub(super) fn is_held(&self) -> bool {
        let held = self.nr_held * 2 > self.nr_bios;
        self.path == Path::Direct && held && self.most_under_way() > 1
    }

    pub(super) fn bytes(&self) -> u64 {
        let sectors = self.units.iter().map(|u| u.nr_sectors);
        sectors
            .fold(0, u64::saturating_add)
            .saturating_mul(SECTOR_BYTES)
    }

    /// Adds a bio; with those before it, if one system call was cut into them. `largest` is
    /// the longest bio of its process.
    fn add(&mut self, b: &Bio, largest: u32, last: Option<&Bio>) {
        if b.nr_sectors == 0 {
            self.nr_flushes += 1;
            return;
        }
        self.nr_bios += 1;
        self.nr_slept += u64::from(b.marks.has(Marks::SLEPT));
        self.nr_held += u64::from(b.marks.has(Marks::HELD));
        let unit = Unit::new(b);
        if let (Some(before), Some(last)) = (self.units.last_mut(), last) {
            let was_cut = last.nr_sectors >= largest.max(CUT_SECTORS);
            let gap = b.at.ns() - last.at.ns().min(b.at.ns());
            let goes_on = before.end() == b.sector && before.op == b.op && !unit.woke;
            if was_cut
                && goes_on
                && gap <= AT_ONCE.ns()
                && before.nr_sectors + unit.nr_sectors <= UNIT_SECTORS_MAX
            {
                before.nr_sectors += unit.nr_sectors;
                before.done = before.done.zip(unit.done).map(|(a, b)| a.max(b));
                return;
            }
        }
        self.units.push(unit);
    }
}

/// Whether the page cache wrote it: a plain write that its process does not wait for, or
/// that a thread of the kernel writes, whatever it seems to wait for.
fn is_written_back(p: &Process, b: &Bio) -> bool {
    let special = BioFlags::SYNC | BioFlags::FUA | BioFlags::FLUSH | BioFlags::BARRIER;
    let waits = b.marks.has(Marks::AWAITED) && !p.is_kernel_thread();
    b.op == Op::Write && b.nr_sectors > 0 && !b.flags.any(special) && !waits
}

/// The streams of a trace.
pub(super) fn streams(recorded: &Recorded) -> Vec<Stream> {
    let mut all = Vec::new();
    let mut written_back: Vec<&Bio> = Vec::new();
    for p in &recorded.processes {
        written_back.extend(p.bios.iter().filter(|b| is_written_back(p, b)));
        all.extend(of_process(p));
    }
    written_back.sort_by_key(|b| b.at);
    all.extend(writers(&written_back));
    all
}

/// The streams of a process, without what the page cache wrote.
fn of_process(p: &Process) -> Vec<Stream> {
    let name = section_name(p);
    let own = || p.bios.iter().filter(|b| !is_written_back(p, b));
    let largest = own().map(|b| b.nr_sectors).max().unwrap_or(0);
    let mut parts: Vec<(bool, bool, Stream, Option<Bio>)> = Vec::new();
    for b in own() {
        let is_trim = b.op == Op::Discard;
        // What it waits for in the same way is one job. A flush belongs to the writes.
        let awaited = b.marks.has(Marks::AWAITED) || p.waiting == Waiting::Free;
        let place = parts
            .iter()
            .position(|(a, t, ..)| (*a, *t) == (awaited, is_trim));
        let place = place.unwrap_or_else(|| {
            let waiting = if awaited { p.waiting } else { Waiting::Free };
            let suffix = match (parts.is_empty(), is_trim) {
                (true, _) => "",
                (false, true) => "-trim",
                (false, false) => "-async",
            };
            let stream = Stream::new(format!("{name}{suffix}"), waiting, Path::Direct);
            parts.push((awaited, is_trim, stream, None));
            parts.len() - 1
        });
        let (_, _, stream, last) = &mut parts[place];
        stream.add(b, largest, last.as_ref());
        *last = Some(*b);
    }
    let streams = parts.into_iter().map(|(_, _, stream, _)| stream);
    streams.filter(|s| !s.units.is_empty()).collect()
}

/// Who wrote through the page cache, by the places that were written one after the other. What
/// is too little for a section of its own is one together.
fn writers(bios: &[&Bio]) -> Vec<Stream> {
    let new = |name: &str| Stream::new(name.to_owned(), Waiting::Free, Path::Buffered);
    let mut places: Vec<(u64, Stream)> = Vec::new();
    // A bio's place; the one that was written to last comes first.
    let mut recent: Vec<usize> = Vec::new();
    for b in bios {
        let near = |end: u64| b.sector >= end && b.sector - end <= NEAR_SECTORS;
        let found = recent.iter().position(|p| near(places[*p].0));
        let place = match found {
            Some(i) => recent.remove(i),
            None => {
                places.push((0, new("writer")));
                places.len() - 1
            }
        };
        recent.insert(0, place);
        recent.truncate(WRITERS_MAX);
        let (end, stream) = &mut places[place];
        *end = b.end();
        stream.add(b, u32::MAX, None);
    }
    let total: u64 = places.iter().map(|(_, s)| s.bytes()).sum();
    let mut rest = new("writers");
    let mut large = Vec::new();
    for (_, mut s) in places {
        if s.bytes().saturating_mul(WRITER_SHARE) >= total {
            large.push(s);
        } else {
            rest.nr_bios += s.nr_bios;
            rest.nr_slept += s.nr_slept;
            rest.nr_held += s.nr_held;
            rest.units.append(&mut s.units);
        }
    }
    rest.units.sort_by_key(|u| u.at);
    large.extend(Some(rest).filter(|r| !r.units.is_empty()));
    large
}

/// The name of a process as that of a section: fio's end with `]`, and comments begin with `;`
/// and `#`.
fn section_name(p: &Process) -> String {
    let name = p.name.as_deref().unwrap_or("pid");
    let keeps = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let plain: String = name
        .chars()
        .take(32)
        .map(|c| if keeps(c) { c } else { '_' })
        .collect();
    format!("{plain}-{}", p.pid)
}
