// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file that our program reads (`program/replay.c`).
//!
//! ```text
//! head       magic, number of processes
//! processes  number of bios, start, gap, kind, priority, depth, burst, room, control group
//! bios       time, sector, sectors, room, operation, marks
//! ```
//!
//! Numbers are little-endian.

use blklab_types::{BioFlags, IoPrio, Op, Pid, PrioClass};

/// What the file begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"blkproc1");
/// Bytes for the file that takes processes into a group, with a zero behind.
pub(super) const GROUP_BYTES: usize = 256;

/// When a process submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Every bio at its time.
    Timed,
    /// When there is room for it; but for the first, times are pauses.
    Room,
    /// The same, and pauses count from where the process last went on.
    Paced,
    /// In bursts; times are pauses after a wait.
    Bursts(Bursts),
}

/// How a process submits in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bursts {
    /// When it starts.
    pub(super) start_ns: u64,
    /// The pause between two bios of a burst.
    pub(super) gap_ns: u64,
    /// It submits while fewer are under way,
    pub(super) burst: u32,
    /// and waits until fewer than so many are.
    pub(super) room: u32,
}

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Submitter {
    pub(super) pid: Pid,
    pub(super) name: String,
    pub(super) prio: IoPrio,
    pub(super) kind: Kind,
    /// Most bios that the kernel is asked to have under way.
    pub(super) depth: u32,
    /// The file that takes it into its control group; empty: none.
    pub(super) group: String,
    nr_bios: u64,
    bios: Vec<u8>,
}

/// A bio of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) time_ns: u64,
    pub(super) sector: u64,
    pub(super) nr_sectors: u32,
    /// It waits until fewer than so many awaited ones are under way; 0: for none.
    pub(super) room: u32,
    pub(super) op: Op,
    pub(super) flags: BioFlags,
    /// It is handed over with the next one.
    pub(super) is_held: bool,
    /// It takes room.
    pub(super) is_awaited: bool,
    /// Its process went on there.
    pub(super) woke: bool,
}

impl Submitter {
    /// A process without bios.
    pub(super) fn new(pid: Pid, name: String, kind: Kind) -> Submitter {
        Submitter {
            pid,
            name,
            prio: IoPrio::default(),
            kind,
            depth: 1,
            group: String::new(),
            nr_bios: 0,
            bios: Vec::new(),
        }
    }

    /// Adds a bio.
    pub(super) fn push(&mut self, step: &Step) {
        self.nr_bios += 1;
        let to = &mut self.bios;
        put(to, [step.time_ns, step.sector]);
        put(to, [step.nr_sectors, step.room, operation(step.op)]);
        put(to, [marks(step)]);
    }

    fn write(&self, to: &mut Vec<u8>) {
        let (kind, bursts) = match self.kind {
            Kind::Timed => (0, None),
            Kind::Room => (1, None),
            Kind::Paced => (2, None),
            Kind::Bursts(bursts) => (3, Some(bursts)),
        };
        let bursts = bursts.unwrap_or(Bursts {
            start_ns: 0,
            gap_ns: 0,
            burst: 0,
            room: 0,
        });
        put(to, [self.nr_bios, bursts.start_ns, bursts.gap_ns]);
        put(to, [kind, ioprio(self.prio), self.depth]);
        put(to, [bursts.burst, bursts.room, 0]);
        let mut group = [0; GROUP_BYTES];
        let bytes = self.group.bytes().take(GROUP_BYTES - 1);
        group
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = from);
        to.extend(group);
    }
}

/// The file of some processes.
pub(super) fn write(all: &[Submitter]) -> Vec<u8> {
    let mut file = Vec::new();
    put(&mut file, [MAGIC]);
    put(&mut file, [u32::try_from(all.len()).unwrap_or(u32::MAX), 0]);
    all.iter().for_each(|p| p.write(&mut file));
    all.iter().for_each(|p| file.extend(&p.bios));
    file
}

fn operation(op: Op) -> u32 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

fn marks(step: &Step) -> u32 {
    let is_write = step.op == Op::Write;
    let through = BioFlags::FUA | BioFlags::BARRIER;
    let behind_flush = BioFlags::FLUSH | BioFlags::BARRIER;
    let all = [
        is_write && step.flags.any(through),
        is_write && step.flags.any(behind_flush),
        step.is_held,
        step.is_awaited,
        step.woke,
    ];
    let set = all.into_iter().zip(0..).filter(|(is_set, _)| *is_set);
    set.map(|(_, bit)| 1 << bit).sum()
}

/// A priority as the kernel takes it; 0: none of its own.
fn ioprio(prio: IoPrio) -> u32 {
    const CLASS_SHIFT: u32 = 13;
    let class = match prio.class {
        PrioClass::RealTime => 1,
        PrioClass::BestEffort => 2,
        PrioClass::Idle => 3,
        _ => return 0,
    };
    class << CLASS_SHIFT | u32::from(prio.level)
}

/// A number of the file.
trait Number {
    fn append(self, to: &mut Vec<u8>);
}

impl Number for u32 {
    fn append(self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

impl Number for u64 {
    fn append(self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

fn put<N: Number, const LEN: usize>(to: &mut Vec<u8>, numbers: [N; LEN]) {
    numbers.into_iter().for_each(|n| n.append(to));
}

#[cfg(test)]
mod tests {
    use super::{Bursts, GROUP_BYTES, Kind, Step, Submitter, write};
    use blklab_types::{BioFlags, IoPrio, Op, PrioClass};

    #[test]
    fn processes_come_before_the_bios_of_all() {
        let bursts = Bursts {
            start_ns: 3,
            gap_ns: 4,
            burst: 5,
            room: 6,
        };
        let mut p = Submitter::new(7, "a".to_owned(), Kind::Bursts(bursts));
        p.prio = IoPrio {
            class: PrioClass::BestEffort,
            level: 2,
        };
        p.depth = 9;
        p.group = "/g/cgroup.procs".to_owned();
        p.push(&Step {
            time_ns: 10,
            sector: 11,
            nr_sectors: 12,
            room: 13,
            op: Op::Write,
            flags: BioFlags::BARRIER,
            is_held: true,
            is_awaited: true,
            woke: false,
        });
        let file = write(&[p]);
        let words: Vec<u32> = file
            .chunks(4)
            .map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")))
            .collect();
        assert_eq!(&file[..8], b"blkproc1");
        assert_eq!(words[2..4], [1, 0]);
        assert_eq!(words[4..10], [1, 0, 3, 0, 4, 0]);
        assert_eq!(words[10..16], [3, 2 << 13 | 2, 9, 5, 6, 0]);
        assert_eq!(&file[64..80], b"/g/cgroup.procs\0");
        let bio = 16 + GROUP_BYTES / 4;
        assert_eq!(words[bio..], [10, 0, 11, 0, 12, 13, 1, 0b1111]);
    }
}
