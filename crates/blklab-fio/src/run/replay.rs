// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaying a log: the next entry, once its time has come.
//!
//! Behaviour of fio 3.33 (iolog.c): a pause counts from the issue of the I/O
//! before, or from opening or closing a file; nothing but the end of the job
//! cuts it short, and then the I/O is issued at once.

use super::{At, JobRun, Step};
use crate::job::Job;
use crate::replay::{Act, Cursor, Entry};

/// fio looks that often whether the job is to end while it pauses.
const LOOK_NS: u64 = 500_000_000;

/// The place of a job in its log.
#[derive(Clone, Debug)]
pub(super) struct Playback {
    entries: Cursor,
    /// The entry whose time has not come.
    next: Option<Entry>,
    /// When something was issued, opened or closed last.
    pub(super) last_issue_ns: Option<u64>,
}

impl Playback {
    pub(super) fn new(job: &Job) -> Option<Playback> {
        job.replay.as_ref().map(|replay| Playback {
            entries: replay.entries(),
            next: None,
            last_issue_ns: None,
        })
    }
}

impl JobRun {
    /// The next recorded I/O in this record, or a pause, or the end.
    pub(super) fn replay(&mut self, record: u32, now_ns: u64) -> Option<Step> {
        loop {
            let playback = self.playback.as_mut()?;
            let entry = playback.next.take().or_else(|| playback.entries.next());
            let Some(entry) = entry else {
                self.records.put(record);
                self.done = true;
                return self.nothing_to_issue();
            };
            let due_ns = match (entry.act, playback.last_issue_ns) {
                (Act::Until { ms }, _) => ms.saturating_mul(1_000_000),
                (_, Some(last_ns)) if entry.delay_us > 0 => {
                    last_ns.saturating_add(entry.delay_us.saturating_mul(1000))
                }
                _ => 0,
            };
            if due_ns > now_ns && !self.terminated {
                playback.next = Some(entry);
                self.at = At::Replay { record };
                return Some(Step::Wait {
                    until_ns: due_ns.min(now_ns.saturating_add(LOOK_NS)),
                    spin: false,
                });
            }
            match entry.act {
                Act::Until { .. } => continue,
                Act::Add => {}
                Act::Open { file } => self.files.reopen(file, self.offset_seed, &mut self.out),
                Act::Close { file } => {
                    let fsync = self.fsync_on_close();
                    self.files.close_file(file, fsync, &mut self.out);
                }
                Act::Io {
                    op,
                    file,
                    offset,
                    length,
                } => {
                    self.files.hold(file);
                    let slot = self.records.get(record);
                    slot.op = op;
                    slot.file = Some(file);
                    slot.offset = offset;
                    slot.length = length;
                    return self.go(At::Ready { record });
                }
            }
            if let Some(playback) = &mut self.playback {
                playback.last_issue_ns = Some(now_ns);
            }
            if !self.out.is_empty() {
                // The file is opened or closed before anything else happens.
                self.at = At::Replay { record };
                return None;
            }
        }
    }
}
