// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios whose submitters ask for a request: each process has one at a time.

use blklab_trace::{Action, Event};
use blklab_types::Pid;
use std::collections::BTreeMap;

/// Processes whose bio is remembered.
const PIDS_MAX: usize = 1 << 16;

/// The bios of a device that have no request yet, by process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asking {
    bios: BTreeMap<Pid, Bio>,
}

/// A bio, or what is left of one that was split.
#[derive(Clone, Copy, Debug)]
struct Bio {
    sector: u64,
    /// Of the whole.
    bytes: u32,
    /// Where what is behind its first part begins.
    rest: Option<u64>,
}

/// What an event was for a bio without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It got one.
    Granted,
    /// It is over: its submitter does not sleep for one (`bio_wouldblock_error`). A command
    /// of the same sectors may be at the device meanwhile.
    Refused,
}

impl Asking {
    /// The next event of the device, and what it was for the bio of its process.
    pub(crate) fn event(&mut self, e: &Event) -> Option<Answer> {
        let answer = match e.action {
            Action::Queue => {
                if self.bios.len() >= PIDS_MAX {
                    self.bios.clear();
                }
                let bio = Bio {
                    sector: e.sector,
                    bytes: e.bytes,
                    rest: None,
                };
                self.bios.insert(e.pid, bio);
                return None;
            }
            Action::Split => {
                let bio = self.bios.get_mut(&e.pid)?;
                bio.rest = (bio.sector == e.sector).then_some(e.arg);
                return None;
            }
            Action::BackMerge | Action::FrontMerge => {
                self.part_is_over(e.pid);
                return None;
            }
            Action::GetRequest => Answer::Granted,
            Action::Complete if e.is_refusal() => Answer::Refused,
            _ => return None,
        };
        let bio = self.bios.get(&e.pid)?;
        // A part of it may be granted, but only the whole is refused.
        let is_whole = bio.bytes == e.bytes;
        if bio.sector != e.sector || (answer == Answer::Refused && !is_whole) {
            return None;
        }
        self.part_is_over(e.pid);
        Some(answer)
    }

    /// The first part of a bio has a request, or was merged or refused.
    fn part_is_over(&mut self, pid: Pid) {
        let bio = self.bios.remove(&pid);
        if let Some(bio) = bio
            && let Some(sector) = bio.rest
        {
            let rest = None;
            self.bios.insert(
                pid,
                Bio {
                    sector,
                    rest,
                    ..bio
                },
            );
        }
    }
}
