// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holding back tasks that dirty pages: `balance_dirty_pages`
//! (mm/page-writeback.c, 2.6.18 to 2.6.32).
//!
//! Every so many pages dirtied on a processor the limits are checked; a task
//! over its limit writes pages itself, of whatever file is next, and may sleep
//! for a request while it does. From 2.6.32 on it sleeps by the clock when it
//! has nothing to write; from 3.2 on it never writes (see `balance.rs`).

use crate::cache::PageCache;
use crate::control::WriteControl;
use crate::features::{OverLimit, Throttle, WriteChunk};
use crate::limits;
use crate::memory::CONGESTION_TIMEOUT;
use crate::ops::Host;
use crate::state::pdflush::Job;
use crate::state::sleeps::Sleep;
use crate::state::{Check, State};

/// Pages between checks while the limit is exceeded.
const EXCEEDED_PAGES: u64 = 8;

impl<H: Host> PageCache<H> {
    /// Pages that the running task can dirty until the limits are checked.
    pub(crate) fn pages_until_check(&self) -> u64 {
        let (dirtier, cpu) = (self.dirtier(), self.cpu());
        let by_pauses = self.by_pauses();
        self.with(|s| {
            if by_pauses {
                s.pages_until_poll(dirtier, cpu)
            } else {
                check_interval(s).saturating_sub(s.dirtied[cpu]).max(1)
            }
        })
    }

    /// Counts pages just dirtied and checks the limits when it is time to
    /// (`balance_dirty_pages_ratelimited_nr`).
    pub async fn balance_ratelimited(&self, pages: u64) {
        let cpu = self.cpu();
        if self.by_pauses() {
            let dirtier = self.dirtier();
            if self.with(|s| s.poll_due(dirtier, cpu)) {
                self.set_throttled(true);
                self.balance_by_pauses().await;
                self.set_throttled(false);
            }
            return;
        }
        let due = self.with(|s| {
            s.dirtied[cpu] += pages;
            let due = s.dirtied[cpu] >= check_interval(s);
            due.then(|| std::mem::take(&mut s.dirtied[cpu]))
        });
        if let Some(dirtied) = due {
            self.set_throttled(true);
            self.balance(dirtied).await;
            self.set_throttled(false);
        }
    }

    fn by_pauses(&self) -> bool {
        self.config.features.throttle == Throttle::SleepOnly
    }

    fn cpu(&self) -> usize {
        self.host.current().idx() % self.config.cpus as usize
    }

    /// `balance_dirty_pages`, up to 3.1.
    async fn balance(&self, dirtied: u64) {
        let task = self.host.current();
        let started = self.host.now();
        let global = self.config.features.throttle == Throttle::Global;
        let chunk = self.with(|s| {
            limits::write_chunk(match self.config.features.write_chunk {
                WriteChunk::Ratelimit => s.ratelimit,
                WriteChunk::Dirtied => s.ratelimit.max(dirtied),
            })
        });
        let longest = (u64::from(self.host.hz().0) / 10).max(1);
        let mut ticks = 1;
        let check = || self.with(|s| s.check(&self.config, task));
        let mut exceeded = false;
        let mut waits = 0;
        let mut written = 0;
        let mut now: Check;
        loop {
            now = check();
            if now.pages <= now.limit || now.pages < now.freerun {
                break;
            }
            exceeded = true;
            self.with(|s| s.wbs.group(0).dirty_exceeded = true);
            let enough = if self.config.features.writes_above_limit_only {
                now.limit
            } else {
                0
            };
            if now.dirty > enough {
                let mut control = WriteControl::background(chunk);
                self.write_inodes(&mut control, false).await;
                written += control.written(chunk);
                now = check();
            }
            if now.pages <= now.limit || written >= chunk {
                break;
            }
            match self.config.features.over_limit {
                OverLimit::Congestion => {
                    let wait = self.host.congestion_wait(CONGESTION_TIMEOUT);
                    self.sleeping(Sleep::Congestion, wait).await;
                }
                OverLimit::Doubling => {
                    self.sleep_ticks(ticks).await;
                    ticks = (ticks * 2).min(longest);
                }
            }
            waits += 1;
        }
        let took = self.host.now().since(started);
        let background_wanted = self.with(|s| {
            let below = if global {
                now.pages <= now.limit
            } else {
                now.pages < now.limit
            };
            s.wbs.group(0).dirty_exceeded &= !below;
            let t = s.stats.throttled_mut(task);
            t.checks += 1;
            t.exceeded += u64::from(exceeded);
            t.waits += waits;
            t.pages_written += written;
            t.time += took;
            !self.background_runs(s) && s.nr_dirty > now.background
        });
        if background_wanted {
            self.offer(Job::Background { min_pages: 0 });
        }
    }
}

fn check_interval(s: &mut State) -> u64 {
    if s.wbs.group(0).dirty_exceeded {
        EXCEEDED_PAGES
    } else {
        s.ratelimit
    }
}
