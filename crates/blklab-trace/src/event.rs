// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events and their flags.

use blklab_types::{BioFlags, Dev, Op, Pid, Time};
use std::fmt;

/// What happened, in blktrace's letters (`include/uapi/linux/blktrace_api.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Action {
    /// Q: a bio entered the queue.
    Queue = 1,
    /// M: the bio was appended to a waiting request.
    BackMerge = 2,
    /// F: the bio was put in front of a waiting request.
    FrontMerge = 3,
    /// G: a request was granted.
    GetRequest = 4,
    /// S: the task goes to sleep because no request is free.
    SleepRequest = 5,
    /// R: the driver gave the request back.
    Requeue = 6,
    /// D: the driver was shown the request.
    Issue = 7,
    /// C: (part of) the request is done.
    Complete = 8,
    /// P: the queue or the task's list was plugged.
    Plug = 9,
    /// U: unplugged by somebody who waits.
    Unplug = 10,
    /// UT: unplugged by the timer.
    UnplugTimer = 11,
    /// I: the request entered the scheduler or the dispatch list.
    Insert = 12,
    /// X: a bio was split.
    Split = 13,
    /// B: a bio was bounced.
    Bounce = 14,
    /// A: a bio was remapped from a partition or stacked device.
    Remap = 15,
    /// m: a text message.
    Message = 16,
}

impl Action {
    /// Every action, in the order of the codes 1 to 16.
    pub const ALL: [Action; 16] = [
        Action::Queue,
        Action::BackMerge,
        Action::FrontMerge,
        Action::GetRequest,
        Action::SleepRequest,
        Action::Requeue,
        Action::Issue,
        Action::Complete,
        Action::Plug,
        Action::Unplug,
        Action::UnplugTimer,
        Action::Insert,
        Action::Split,
        Action::Bounce,
        Action::Remap,
        Action::Message,
    ];

    /// The action with the code `code`, which is that of the kernel header
    /// for all but messages.
    pub fn from_code(code: u8) -> Option<Action> {
        Action::ALL.get(usize::from(code).wrapping_sub(1)).copied()
    }

    /// The action that blkparse shows as `letters`.
    pub fn from_letters(letters: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|a| a.letters() == letters)
    }

    /// blkparse's letters for the action.
    pub fn letters(self) -> &'static str {
        match self {
            Action::Queue => "Q",
            Action::BackMerge => "M",
            Action::FrontMerge => "F",
            Action::GetRequest => "G",
            Action::SleepRequest => "S",
            Action::Requeue => "R",
            Action::Issue => "D",
            Action::Complete => "C",
            Action::Plug => "P",
            Action::Unplug => "U",
            Action::UnplugTimer => "UT",
            Action::Insert => "I",
            Action::Split => "X",
            Action::Bounce => "B",
            Action::Remap => "A",
            Action::Message => "m",
        }
    }
}

/// Direction and flags as the kernel records them with an event. Which flags
/// an event shows depends on the kernel version and on whether it is a bio or
/// a request event; the block layer decides, readers take what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rwbs(pub u16);

impl Rwbs {
    /// No direction: plug events, messages.
    pub const NONE: Rwbs = Rwbs(0);
    /// R.
    pub const READ: Rwbs = Rwbs(1 << 0);
    /// W.
    pub const WRITE: Rwbs = Rwbs(1 << 1);
    /// D.
    pub const DISCARD: Rwbs = Rwbs(1 << 2);
    /// F in front: the device's cache is flushed first (2.6.37 and later).
    pub const FLUSH: Rwbs = Rwbs(1 << 3);
    /// F behind the direction: forced unit access.
    pub const FUA: Rwbs = Rwbs(1 << 4);
    /// B: barrier (up to 2.6.36).
    pub const BARRIER: Rwbs = Rwbs(1 << 5);
    /// A: read-ahead.
    pub const AHEAD: Rwbs = Rwbs(1 << 6);
    /// S: sync.
    pub const SYNC: Rwbs = Rwbs(1 << 7);
    /// M: metadata.
    pub const META: Rwbs = Rwbs(1 << 8);
    /// A command passed through to the device instead of file-system I/O;
    /// its sector means nothing. blkparse shows no letter for it.
    pub const PC: Rwbs = Rwbs(1 << 9);

    /// Whether all bits of `o` are set.
    pub fn has(self, o: Rwbs) -> bool {
        self.0 & o.0 == o.0
    }

    /// The direction that the letters show, if there is one: a discard is
    /// not counted as a write.
    pub fn op(self) -> Option<Op> {
        if self.has(Rwbs::DISCARD) {
            Some(Op::Discard)
        } else if self.has(Rwbs::WRITE) {
            Some(Op::Write)
        } else if self.has(Rwbs::READ) {
            Some(Op::Read)
        } else if self.has(Rwbs::FLUSH) {
            Some(Op::Flush)
        } else {
            None
        }
    }

    /// The union.
    #[must_use]
    pub fn with(self, o: Rwbs) -> Rwbs {
        Rwbs(self.0 | o.0)
    }

    /// Direction alone.
    pub fn of_op(op: Op) -> Rwbs {
        match op {
            Op::Read => Rwbs::READ,
            Op::Write => Rwbs::WRITE,
            Op::Discard => Rwbs::DISCARD,
            Op::Flush => Rwbs::FLUSH,
        }
    }

    /// Flags of bios and how they are shown.
    const OF_BIOS: [(BioFlags, Rwbs); 6] = [
        (BioFlags::FLUSH, Rwbs::FLUSH),
        (BioFlags::FUA, Rwbs::FUA),
        (BioFlags::BARRIER, Rwbs::BARRIER),
        (BioFlags::AHEAD, Rwbs::AHEAD),
        (BioFlags::SYNC, Rwbs::SYNC),
        (BioFlags::META, Rwbs::META),
    ];

    /// Direction and all flags of a bio.
    pub fn of_bio(op: Op, flags: BioFlags) -> Rwbs {
        if flags == BioFlags::NONE {
            return Rwbs::of_op(op);
        }
        let shown = Rwbs::OF_BIOS.iter().filter(|(flag, _)| flags.has(*flag));
        shown.fold(Rwbs::of_op(op), |rwbs, (_, bit)| rwbs.with(*bit))
    }

    /// The flags of a bio that is shown like this.
    pub fn bio_flags(self) -> BioFlags {
        let set = Rwbs::OF_BIOS.iter().filter(|(_, bit)| self.has(*bit));
        set.fold(BioFlags::NONE, |flags, (flag, _)| flags | *flag)
    }
}

/// blkparse's letters: `F` flush; one of `D W R N`; then `F` forced unit
/// access, `B` barrier, `A` read-ahead, `S` sync, `M` metadata.
impl fmt::Display for Rwbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.op() {
            Some(Op::Discard) => 'D',
            Some(Op::Write) => 'W',
            Some(Op::Read) => 'R',
            Some(Op::Flush) | None => 'N',
        };
        let mut text = String::with_capacity(8);
        if self.has(Rwbs::FLUSH) {
            text.push('F');
        }
        text.push(direction);
        for (bit, letter) in [
            (Rwbs::FUA, 'F'),
            (Rwbs::BARRIER, 'B'),
            (Rwbs::AHEAD, 'A'),
            (Rwbs::SYNC, 'S'),
            (Rwbs::META, 'M'),
        ] {
            if self.has(bit) {
                text.push(letter);
            }
        }
        f.pad(&text)
    }
}

/// One trace event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: Time,
    /// First sector on the device, 0 where there is none.
    pub sector: u64,
    /// Further number, by action: requests at unplug ([`Action::Unplug`],
    /// [`Action::UnplugTimer`]), new sector ([`Action::Split`]), sector on
    /// the device above ([`Action::Remap`]); else 0.
    pub arg: u64,
    /// Length in bytes, 0 where there is none.
    pub bytes: u32,
    /// Task in whose context it happened; 0 in interrupts.
    pub pid: Pid,
    /// The device.
    pub dev: Dev,
    /// [`Action::Remap`]: the device above. Else as `dev` or zero.
    pub from_dev: Dev,
    /// Positive errno of a completion, 0 for success.
    pub error: u16,
    /// CPU on which it happened.
    pub cpu: u16,
    /// Direction and flags.
    pub rwbs: Rwbs,
    /// What happened.
    pub action: Action,
}

/// "Try again": the error of bios whose submitter does not sleep (`EAGAIN`).
const EAGAIN: u16 = 11;

impl Event {
    /// The end of the bio that this event is about: it gets no request, and its submitter does
    /// not sleep for one (`bio_wouldblock_error`).
    #[must_use]
    pub fn refused(self) -> Event {
        Event {
            action: Action::Complete,
            error: EAGAIN,
            ..self
        }
    }

    /// Whether it says that something ended which would have had to sleep.
    pub fn is_refusal(&self) -> bool {
        self.action == Action::Complete && self.error == EAGAIN
    }

    /// A message, or another event that is about no sectors.
    pub fn message(time: Time, cpu: u16, pid: Pid, dev: Dev) -> Event {
        Event {
            time,
            sector: 0,
            arg: 0,
            bytes: 0,
            pid,
            dev,
            from_dev: Dev::default(),
            error: 0,
            cpu,
            rwbs: Rwbs::NONE,
            action: Action::Message,
        }
    }

    /// Length in sectors.
    pub fn nr_sectors(&self) -> u64 {
        u64::from(self.bytes) / blklab_types::SECTOR_BYTES
    }

    /// The sector behind its last one; the largest number there is where a trace names
    /// sectors that no device has.
    pub fn end_sector(&self) -> u64 {
        self.sector.saturating_add(self.nr_sectors())
    }
}

/// One line for test failures and snapshots, blkparse's order of fields:
/// `8,0 0 1.000000500 42 Q WS 2048 + 8`, with `-> ARG` and `[ERROR]` where
/// they are not 0.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{},{} {} {}.{:09} {} {} {} {} + {}",
            self.dev.major,
            self.dev.minor,
            self.cpu,
            self.time.0 / 1_000_000_000,
            self.time.0 % 1_000_000_000,
            self.pid,
            self.action.letters(),
            self.rwbs,
            self.sector,
            self.nr_sectors(),
        )?;
        if self.arg != 0 {
            write!(f, " -> {}", self.arg)?;
        }
        if self.error != 0 {
            write!(f, " [{}]", self.error)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line() {
        let mut e = Event {
            time: Time(1_000_000_500),
            sector: 2048,
            arg: 0,
            bytes: 4096,
            pid: 42,
            dev: Dev { major: 8, minor: 0 },
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::WRITE.with(Rwbs::SYNC),
            action: Action::Queue,
        };
        assert_eq!(e.to_string(), "8,0 0 1.000000500 42 Q WS 2048 + 8");
        e.action = Action::Complete;
        e.error = 5;
        e.rwbs = Rwbs::FLUSH.with(Rwbs::FUA).with(Rwbs::WRITE);
        assert_eq!(e.to_string(), "8,0 0 1.000000500 42 C FWF 2048 + 8 [5]");
    }

    #[test]
    fn flags_come_back_from_the_letters() {
        let all = BioFlags::SYNC | BioFlags::FUA | BioFlags::FLUSH | BioFlags::META;
        assert_eq!(Rwbs::of_bio(Op::Write, all).bio_flags(), all);
        assert_eq!(Rwbs::READ.bio_flags(), BioFlags::NONE);
    }

    #[test]
    fn codes_are_those_of_the_kernel_header() {
        for action in Action::ALL {
            assert_eq!(Action::from_code(action as u8), Some(action));
        }
        assert_eq!(Action::from_code(0), None);
        assert_eq!(Action::from_code(17), None);
        assert_eq!(Action::from_letters("UT"), Some(Action::UnplugTimer));
        assert_eq!(Action::from_letters("Z"), None);
    }
}
