// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tracepoints of the block layer say, in text or binary.

use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Pid};
use std::collections::HashMap;

/// Tasks whose devices are known: more do not submit at a time.
const TASKS_MAX: usize = 1 << 16;

/// What an event of the block layer is, and what its fields are.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A bio, or a request without its bytes: as blkparse shows it.
    Bio(Action),
    /// A request: its bytes, its command, sectors, and the process.
    Request(Action),
    /// A request that comes back: its command, sectors, and the error.
    Done(Action),
    /// A plug: the process, and of how many requests it is relieved.
    Plug(Action),
}

/// The tracepoints that were seen decide what others say anew.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    /// `block_getrq`, which comes just before `block_io_start`.
    has_getrq: bool,
    /// `block_rq_complete`, which comes just before `block_rq_error` and
    /// `block_io_done`.
    has_complete: bool,
    /// The device for which a task was last given a request. Plugs do not say
    /// theirs: they come right behind (`blk_add_rq_to_plug`, block/blk-mq.c).
    devices: HashMap<Pid, Dev>,
}

impl Kinds {
    /// Remembers the device of an event's task.
    pub(crate) fn saw(&mut self, event: &Event) {
        if matches!(event.action, Action::Queue | Action::GetRequest)
            && (self.devices.len() < TASKS_MAX || self.devices.contains_key(&event.pid))
        {
            self.devices.insert(event.pid, event.dev);
        }
    }

    /// The device that a task plugs or unplugs.
    pub(crate) fn plugged(&self, pid: Pid) -> Option<Dev> {
        self.devices.get(&pid).copied()
    }

    /// What an event is; none if it is no I/O, or if another event said so.
    pub(crate) fn kind(&mut self, name: &[u8]) -> Option<Kind> {
        if !name.starts_with(b"block_") {
            return None;
        }
        Some(match name {
            b"block_bio_queue" => Kind::Bio(Action::Queue),
            b"block_bio_backmerge" => Kind::Bio(Action::BackMerge),
            b"block_bio_frontmerge" => Kind::Bio(Action::FrontMerge),
            b"block_bio_bounce" => Kind::Bio(Action::Bounce),
            b"block_bio_complete" => Kind::Bio(Action::Complete),
            b"block_bio_remap" | b"block_rq_remap" => Kind::Bio(Action::Remap),
            b"block_sleeprq" => Kind::Bio(Action::SleepRequest),
            b"block_split" => Kind::Bio(Action::Split),
            b"block_plug" => Kind::Plug(Action::Plug),
            b"block_unplug" | b"block_unplug_io" => Kind::Plug(Action::Unplug),
            b"block_unplug_timer" => Kind::Plug(Action::UnplugTimer),
            b"block_getrq" => {
                self.has_getrq = true;
                Kind::Bio(Action::GetRequest)
            }
            b"block_io_start" if !self.has_getrq => Kind::Request(Action::GetRequest),
            b"block_rq_merge" => Kind::Request(Action::BackMerge),
            b"block_rq_insert" => Kind::Request(Action::Insert),
            b"block_rq_issue" => Kind::Request(Action::Issue),
            b"block_rq_requeue" => Kind::Done(Action::Requeue),
            b"block_rq_complete" => {
                self.has_complete = true;
                Kind::Done(Action::Complete)
            }
            b"block_rq_error" | b"block_rq_abort" if !self.has_complete => {
                Kind::Done(Action::Complete)
            }
            b"block_io_done" if !self.has_complete => Kind::Request(Action::Complete),
            _ => return None,
        })
    }
}

/// Gives a request's event its place: the length in bytes, or that of a command,
/// which `command_bytes` counts. An empty flush has the sector -1, or 0.
pub(crate) fn place(event: &mut Event, sector: u64, length: u32, command_bytes: u32) {
    event.bytes = length;
    if sector != u64::MAX {
        event.sector = sector;
    }
    let flags = event.rwbs;
    let is_command = command_bytes > 0 || flags.op().is_none();
    if length == 0 && !flags.has(Rwbs::FLUSH) && is_command {
        event.rwbs = flags.with(Rwbs::PC);
        event.bytes = command_bytes;
    }
}
