// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured: loads, and what came of each of their directions.

use blklab_types::Op;

/// What a drive had been through before a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Everything had been discarded.
    Fresh,
    /// It had been written, long enough for that to be steady.
    #[default]
    Used,
}

impl State {
    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            State::Fresh => "fresh",
            State::Used => "used",
        }
    }
}

/// What the host adds to the time of the device, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTimes {
    /// Interrupt and wake-up, beside other commands.
    pub wake_ns: u64,
    /// Of the process, for each command that it sees complete, before it sees the next.
    pub reap_ns: u64,
    /// Of the process, for each command that it submits, before fio begins to count.
    pub submit_ns: u64,
}

/// Processes of one kind, each with a constant number of commands in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// How many processes there are.
    pub processes: u32,
    /// Commands in flight of each.
    pub depth: u32,
    /// How many of a hundred commands are reads.
    pub read_pct: u32,
    /// Bytes of a read, and of a write.
    pub bytes: [u32; 2],
    /// Commands follow each other in address.
    pub sequential: bool,
    /// What the host adds.
    pub host: HostTimes,
}

impl Stream {
    /// Whether there are commands of this direction.
    pub fn has(&self, op: Op) -> bool {
        match op {
            Op::Read => self.read_pct > 0,
            _ => self.read_pct < 100,
        }
    }

    /// Commands in flight of all its processes.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.processes) * u64::from(self.depth)
    }
}

/// What was measured of one direction of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Which stream of the cell.
    pub stream: usize,
    /// Reads or writes.
    pub op: Op,
    /// Commands per second, of all its processes.
    pub per_s: f64,
    /// Quantiles of completion latencies: the part of the commands (0.99) and
    /// microseconds; rising.
    pub quantiles: Vec<(f64, f64)>,
}

/// A load and what was measured of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its name, as its source has it.
    pub name: String,
    /// Before it.
    pub state: State,
    /// What ran, side by side.
    pub streams: Vec<Stream>,
    /// What came of it.
    pub seen: Vec<Seen>,
}

impl Cell {
    /// Whether there are commands of this direction.
    pub fn has(&self, op: Op) -> bool {
        self.streams.iter().any(|s| s.has(op))
    }

    /// Whether reads are larger than 4 KiB.
    pub fn has_large_reads(&self) -> bool {
        let mut streams = self.streams.iter();
        streams.any(|s| s.has(Op::Read) && s.bytes[0] > 4096)
    }

    /// Commands per second of all that was measured.
    pub fn per_s(&self) -> f64 {
        self.seen.iter().map(|s| s.per_s).sum()
    }

    /// Cells of one kind differ only in how many commands are in flight.
    pub(crate) fn kind(&self) -> Vec<(State, u32, [u32; 2], bool)> {
        let shape = |s: &Stream| (self.state, s.read_pct, s.bytes, s.sequential);
        self.streams.iter().map(shape).collect()
    }

    /// How many commands are in flight.
    pub(crate) fn in_flight(&self) -> Vec<u64> {
        self.streams.iter().map(Stream::in_flight).collect()
    }
}

/// Chooses the cells that the fit does not see: one of so many, and never the one with the
/// fewest or the most commands in flight of its kind, so that what is predicted lies between
/// what is known. 0: none.
pub(crate) fn held_out(cells: &[Cell], one_of: usize) -> Vec<bool> {
    let mut held = vec![false; cells.len()];
    if one_of == 0 {
        return held;
    }
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|i| (cells[*i].kind(), cells[*i].in_flight(), *i));
    let inner = order.windows(3).filter(|w| {
        let kind = cells[w[1]].kind();
        cells[w[0]].kind() == kind && cells[w[2]].kind() == kind
    });
    let inner: Vec<usize> = inner.map(|w| w[1]).collect();
    let most = cells.len() / one_of.max(2);
    let step = inner.len().div_ceil(most.max(1)).max(2);
    for i in inner.iter().step_by(step).take(most) {
        held[*i] = true;
    }
    held
}
