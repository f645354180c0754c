// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pdflush pool and its two jobs (mm/pdflush.c, mm/page-writeback.c,
//! 2.6.18 to 2.6.28).
//!
//! Between two and eight threads wait for jobs; the one that became idle last
//! gets the next. A thread that ends a job starts another thread if none has
//! been idle for a second, and ends itself if one has been idle for longer
//! than that. A timer offers the periodic job. All of them are background
//! tasks: a run does not wait for them, and while nothing is dirty they cost
//! one event in five seconds.

use crate::cache::PageCache;
use crate::control::WriteControl;
use crate::features::Flusher;
use crate::memory::CONGESTION_TIMEOUT;
use crate::ops::Host;
use crate::state::pdflush::{Job, Thread};
use blklab_types::Jiffies;

impl<H: Host> PageCache<H> {
    /// Starts the threads that write back, as at boot.
    pub fn start(&self) {
        self.start_filesystem();
        let hz = self.host.hz();
        self.with(|s| s.set_hz(hz));
        if self.config.features.flusher == Flusher::PerDevice {
            return self.start_flusher();
        }
        for _ in 0..self.config.pdflush_min {
            self.start_pdflush();
        }
        let period = self.config.dirty_writeback_centisecs;
        if period > 0 {
            let first = self
                .host
                .jiffies()
                .plus(self.host.hz().from_ms(period * 10));
            self.with(|s| s.pdflush.due = Some(first));
            self.host
                .spawn("wb_timer", Box::pin(self.clone().periodic_timer()));
        }
    }

    /// Offers a job; refused if no thread is idle (`pdflush_operation`). The
    /// flusher of a device takes every job.
    pub(crate) fn offer(&self, job: Job) -> bool {
        if self.config.features.flusher == Flusher::PerDevice {
            if let Job::Background { min_pages } = job {
                self.ask_flusher(min_pages);
            }
            return true;
        }
        let now = self.host.jiffies();
        let taker = self.with(|s| {
            let taker = s.pdflush.assign(job, now);
            s.stats.pdflush_refused += u64::from(taker.is_none());
            taker
        });
        if let Some(task) = taker {
            self.host.wake(task);
        }
        taker.is_some()
    }

    /// Starts a thread (`start_one_pdflush_thread`).
    fn start_pdflush(&self) {
        self.with(|s| {
            s.pdflush.running += 1;
            s.stats.pdflush_started += 1;
        });
        self.host
            .spawn("pdflush", Box::pin(self.clone().pdflush_thread()));
    }

    /// `__pdflush`.
    async fn pdflush_thread(self) {
        let second = u64::from(self.host.hz().0);
        let task = self.host.current();
        let me = self.with(|s| {
            s.pdflush.threads.push(Thread {
                task,
                job: None,
                idle_since: Jiffies(0),
            });
            s.pdflush.threads.len() - 1
        });
        loop {
            let now = self.host.jiffies();
            self.with(|s| {
                s.pdflush.threads[me].idle_since = now;
                s.pdflush.idle.push_front(me);
            });
            let job = loop {
                match self.with(|s| s.pdflush.threads[me].job.take()) {
                    Some(job) => break job,
                    None => self.host.suspend().await,
                }
            };
            match job {
                Job::Background { min_pages } => self.write_background(min_pages).await,
                Job::Periodic => self.write_periodic().await,
            }
            let now = self.host.jiffies();
            let most = self.config.pdflush_max;
            let short = self.with(|s| {
                let p = &s.pdflush;
                p.idle.is_empty() && now.0 > p.last_empty.0 + second && p.running < most
            });
            if short {
                self.start_pdflush();
            }
            let least = self.config.pdflush_min;
            let superfluous = self.with(|s| {
                let p = &mut s.pdflush;
                let Some(sleepiest) = p.idle.back().map(|t| &mut p.threads[*t]) else {
                    return false;
                };
                let ends = p.running > least && now.0 > sleepiest.idle_since.0 + second;
                if ends {
                    // The next one to end waits another second.
                    sleepiest.idle_since = now;
                    p.running -= 1;
                }
                ends
            });
            if superfluous {
                return;
            }
        }
    }

    /// `background_writeout`.
    async fn write_background(&self, mut min_pages: i64) {
        let budget = self.config.max_writeback_pages;
        loop {
            let below = self.with(|s| s.nr_dirty < s.limits.background);
            if below && min_pages <= 0 {
                return;
            }
            let mut control = WriteControl {
                nonblocking: true,
                ..WriteControl::background(budget)
            };
            self.write_inodes(&mut control, true).await;
            min_pages = min_pages.saturating_sub(control.written(budget) as i64);
            if control.nr_to_write > 0 || control.pages_skipped > 0 {
                if self.config.features.background_always_waits {
                    self.host.congestion_wait(CONGESTION_TIMEOUT).await;
                    if !control.congested {
                        return;
                    }
                } else if !self.pause(&control).await {
                    return;
                }
            }
        }
    }

    /// `wb_kupdate`.
    async fn write_periodic(&self) {
        self.write_super().await;
        let hz = self.host.hz();
        let start = self.host.jiffies();
        let expire = hz.from_ms(self.config.dirty_expire_centisecs * 10);
        let older_than = Some(start.0 as i64 - expire as i64);
        let budget = self.config.max_writeback_pages;
        let mut left = self.with(|s| s.nr_dirty as i64 + s.files.len() as i64);
        while left > 0 {
            let mut control = WriteControl {
                nonblocking: true,
                older_than,
                ..WriteControl::background(budget)
            };
            self.write_inodes(&mut control, true).await;
            if control.nr_to_write > 0 && !self.pause(&control).await {
                break;
            }
            left -= control.written(budget) as i64;
        }
        let period = hz.from_ms(self.config.dirty_writeback_centisecs * 10);
        let next = start
            .plus(period)
            .max(self.host.jiffies().plus(u64::from(hz.0)));
        let timer = self.with(|s| {
            s.pdflush.due = Some(next);
            s.pdflush.timer
        });
        if let Some(timer) = timer {
            self.host.wake(timer);
        }
    }

    /// A round wrote less than it could: sleeps if there is reason to go on.
    async fn pause(&self, control: &WriteControl) -> bool {
        let on = control.congested || control.more_io && self.config.features.more_io_waits;
        if on {
            self.host.congestion_wait(CONGESTION_TIMEOUT).await;
        }
        on
    }

    /// The timer of the periodic job (`wb_timer_fn`); if that is refused, it tries
    /// again a second later.
    async fn periodic_timer(self) {
        let me = self.host.current();
        let hz = self.host.hz();
        self.with(|s| s.pdflush.timer = Some(me));
        loop {
            let Some(due) = self.with(|s| s.pdflush.due.take()) else {
                self.host.suspend().await;
                continue;
            };
            self.sleep_until_tick(due).await;
            if !self.offer(Job::Periodic) {
                let again = self.host.jiffies().plus(u64::from(hz.0));
                self.with(|s| s.pdflush.due = Some(again));
            }
        }
    }
}
