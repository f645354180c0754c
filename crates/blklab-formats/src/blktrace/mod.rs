// SPDX-License-Identifier: MIT OR Apache-2.0
//! The binary records of blktrace, versions 7 and 8.
//!
//! Source: `include/uapi/linux/blktrace_api.h` and `kernel/trace/blktrace.c`
//! (2.6.28 and 6.1 agree on all that is used here; version 8 came with 6.19). A
//! record of version 7 is 48 bytes and a payload:
//!
//! | offset | field |
//! |---|---|
//! | 0 | u32 magic `0x65617400`, version 7 in the lowest byte |
//! | 4 | u32 sequence, from 1 up per CPU, 0 in notes |
//! | 8 | u64 time, ns |
//! | 16 | u64 sector |
//! | 24 | u32 bytes |
//! | 28 | u32 action: code in the low half, categories in the high half |
//! | 32 | u32 pid |
//! | 36 | u32 device, major above 20 bits of minor |
//! | 40 | u32 cpu |
//! | 44 | u16 error, u16 length of the payload |
//!
//! In version 8 the process is at 28, and the action, of 64 bits, at 32; all else
//! is 4 bytes further back, and 12 bytes are left empty, which makes 64. Its
//! categories above 32 bits tell the operations on zones.
//!
//! Left out: driver data, cgroup ids (blkparse 1.2.0 passes over messages that
//! have one; they are read here), the bytes of commands, and the plugs of zones,
//! which are counted by name.
//! 2.6 kernels had one category for barriers where later ones have flushes;
//! both are written as that bit and read as a flush.

mod files;
mod plain;
mod read;
mod write;

pub(crate) use files::CpuFile;
pub use files::{BlktraceReader, COMPRESSED, cpu_files_there};
pub use write::{BlktraceStream, BlktraceWriter, BlktraceWritten};

use crate::ReadCounts;
use crate::format::{Format, MAGIC_BYTES, Reader};
use crate::source::Source;
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::Dev;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "blktrace",
    summary: "NAME.blktrace.CPU: the kernel's binary records, read and written",
    has_printed_times: false,
    says_losses: true,
    says_flags: true,
    dialect: None,
    recognises: |input| Ok(is_magic(input.fill(MAGIC_BYTES)?)),
    open: |input, _| Ok(Box::new(BlktraceReader::from_input(input))),
};

impl Reader for BlktraceReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

/// Length of a record without its payload.
const RECORD_BYTES: usize = 48;
/// Magic number, without the version.
const MAGIC: u32 = 0x6561_7400;
/// The version that is written.
const VERSION: u32 = 7;
/// The version with wider actions.
const VERSION_WIDE: u32 = 8;
/// Length of such a record without its payload.
const RECORD_WIDE_BYTES: usize = 64;
/// Set in the code of an action whose payload begins with a cgroup id.
const CGROUP: u32 = 0x100;
/// Length of that id.
const CGROUP_BYTES: usize = 8;
/// Length of the name in a process note.
const COMM_BYTES: usize = crate::names::COMM_BYTES;

/// Whether `bytes` begin with a magic number, of any version and byte order.
pub fn is_magic(bytes: &[u8]) -> bool {
    bytes
        .first_chunk()
        .is_some_and(|magic| version(*magic).is_some())
}

/// The version that a magic number names, and whether it is big-endian.
fn version(magic: [u8; 4]) -> Option<(u32, bool)> {
    let (little, big) = (u32::from_le_bytes(magic), u32::from_be_bytes(magic));
    if little & !0xff == MAGIC {
        Some((little & 0xff, false))
    } else if big & !0xff == MAGIC {
        Some((big & 0xff, true))
    } else {
        None
    }
}

/// Categories of actions, `BLK_TC_*`.
mod category {
    pub(super) const READ: u32 = 0x0001;
    pub(super) const WRITE: u32 = 0x0002;
    pub(super) const FLUSH: u32 = 0x0004;
    pub(super) const SYNC: u32 = 0x0008;
    pub(super) const QUEUE: u32 = 0x0010;
    pub(super) const REQUEUE: u32 = 0x0020;
    pub(super) const ISSUE: u32 = 0x0040;
    pub(super) const COMPLETE: u32 = 0x0080;
    pub(super) const FS: u32 = 0x0100;
    pub(super) const PC: u32 = 0x0200;
    pub(super) const NOTIFY: u32 = 0x0400;
    pub(super) const AHEAD: u32 = 0x0800;
    pub(super) const META: u32 = 0x1000;
    pub(super) const DISCARD: u32 = 0x2000;
    pub(super) const FUA: u32 = 0x8000;

    /// Version 8, in the upper 32 bits of an action.
    pub(super) mod wide {
        pub(in super::super) const ZONE_APPEND: u32 = 0x01;
        /// Reset, reset of all, finish, open, close: they move no data.
        pub(in super::super) const ZONE_MANAGEMENT: u32 = 0x3e;
    }
}

/// Codes of version 8 without an [`Action`]: `__BLK_TA_ZONE_PLUG` and
/// `__BLK_TA_ZONE_UNPLUG`.
const ZONE_PLUG: u32 = 18;
const ZONE_UNPLUG: u32 = 19;

/// Notes, which share the codes of actions: `BLK_TN_*`.
mod note {
    pub(super) const PROCESS: u32 = 0;
    pub(super) const TIMESTAMP: u32 = 1;
    pub(super) const MESSAGE: u32 = 2;
}

/// Flags that are a category each, beside the direction.
const FLAGS: [(Rwbs, u32); 6] = [
    (Rwbs::FLUSH, category::FLUSH),
    (Rwbs::BARRIER, category::FLUSH),
    (Rwbs::SYNC, category::SYNC),
    (Rwbs::META, category::META),
    (Rwbs::AHEAD, category::AHEAD),
    (Rwbs::FUA, category::FUA),
];

/// The categories of an event as the kernel sets them: what happened, the
/// direction (no direction counts as a read), FS or PC for requests.
fn categories(action: Action, rwbs: Rwbs) -> u32 {
    let happened = match action {
        Action::Requeue => category::REQUEUE,
        Action::Issue => category::ISSUE,
        Action::Complete => category::COMPLETE,
        Action::Message => return category::NOTIFY,
        Action::Split | Action::Bounce => 0,
        _ => category::QUEUE,
    };
    let direction = if rwbs.has(Rwbs::DISCARD) {
        category::WRITE | category::DISCARD
    } else if rwbs.has(Rwbs::WRITE) {
        category::WRITE
    } else {
        category::READ
    };
    let kind = match action {
        _ if rwbs.has(Rwbs::PC) && may_be_passed_through(action) => category::PC,
        Action::Requeue | Action::Issue | Action::Complete | Action::Insert => category::FS,
        _ => 0,
    };
    let mut all = happened | direction | kind;
    for (flag, bit) in FLAGS {
        if rwbs.has(flag) {
            all |= bit;
        }
    }
    all
}

/// Actions that exist for commands passed through to the device.
pub(crate) fn may_be_passed_through(action: Action) -> bool {
    matches!(
        action,
        Action::Queue
            | Action::GetRequest
            | Action::SleepRequest
            | Action::Requeue
            | Action::Issue
            | Action::Complete
            | Action::Insert
    )
}

/// The flags that categories stand for. A record without data shows no
/// direction unless it writes, as in blkparse; the management of zones has none.
fn rwbs(categories: u32, wide: u32, bytes: u32) -> Rwbs {
    let mut rwbs = if wide & category::wide::ZONE_MANAGEMENT != 0 {
        Rwbs::NONE
    } else if categories & category::DISCARD != 0 {
        Rwbs::DISCARD
    } else if categories & category::WRITE != 0 {
        Rwbs::WRITE
    } else if bytes > 0 {
        Rwbs::READ
    } else {
        Rwbs::NONE
    };
    for (flag, bit) in FLAGS {
        if flag != Rwbs::BARRIER && categories & bit != 0 {
            rwbs = rwbs.with(flag);
        }
    }
    if categories & category::PC != 0 {
        rwbs = rwbs.with(Rwbs::PC);
    }
    rwbs
}

/// Kernels record the negative errno cut to 16 bits; older ones a positive
/// number.
fn error(recorded: u16) -> u16 {
    if recorded > u16::MAX - 4096 {
        recorded.wrapping_neg()
    } else {
        recorded
    }
}

fn device_number(dev: Dev) -> u32 {
    u32::from(dev.major) << 20 | u32::from(dev.minor)
}

fn device(number: u32) -> Dev {
    // The minor's upper bits, above 65535, exist on no device in practice.
    Dev {
        major: (number >> 20) as u16,
        minor: number as u16,
    }
}

/// The payload that belongs to an event: nothing, a count, or a remapping.
fn payload(event: &Event) -> ([u8; 16], usize) {
    let mut bytes = [0; 16];
    match event.action {
        Action::Unplug | Action::UnplugTimer | Action::Split => {
            bytes[..8].copy_from_slice(&event.arg.to_be_bytes());
            (bytes, 8)
        }
        Action::Remap => {
            bytes[..4].copy_from_slice(&device_number(event.from_dev).to_be_bytes());
            bytes[4..8].copy_from_slice(&device_number(event.dev).to_be_bytes());
            bytes[8..].copy_from_slice(&event.arg.to_be_bytes());
            (bytes, 16)
        }
        _ => (bytes, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_of_recorded_events() {
        // From traces of Linux 6.1 on a sequence Q G I D C P UT.
        let rs = Rwbs::READ.with(Rwbs::SYNC);
        let check = |action, flags, expected| assert_eq!(categories(action, flags), expected);
        check(Action::Queue, rs, 0x0019);
        check(Action::GetRequest, rs, 0x0019);
        check(Action::Insert, rs, 0x0119);
        check(Action::Issue, rs, 0x0149);
        check(Action::Complete, rs, 0x0189);
        check(Action::Plug, Rwbs::NONE, 0x0011);
        check(Action::UnplugTimer, Rwbs::NONE, 0x0011);
        check(Action::Split, Rwbs::WRITE.with(Rwbs::SYNC), 0x000a);
        check(Action::Message, Rwbs::NONE, 0x0400);
    }

    #[test]
    fn flags_survive() {
        for bits in 0..1u16 << 10 {
            let flags = Rwbs(bits & !Rwbs::BARRIER.0);
            let nr_directions = [Rwbs::READ, Rwbs::WRITE, Rwbs::DISCARD]
                .into_iter()
                .filter(|d| flags.has(*d))
                .count();
            if nr_directions == 1 {
                assert_eq!(rwbs(categories(Action::Issue, flags), 0, 4096), flags);
            }
        }
    }
}
