// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters of a machine, told where somebody wants them: at the end of each instant,
//! those that have changed in it.

use super::{Disk, Machine, World};
use blklab_pagecache::Usage;
use blklab_trace::{Counter, CounterSink};
use blklab_types::{Dev, Time};
use std::rc::Rc;

/// Asks the page cache.
type AskCache = dyn Fn() -> Usage;

/// Who is told, and what was told last.
pub(super) struct Counters {
    sink: Box<dyn CounterSink>,
    cache: Option<Rc<AskCache>>,
    /// They come in the same order each time.
    told: Vec<u32>,
}

impl Counters {
    pub(super) fn new(sink: Box<dyn CounterSink>) -> Counters {
        Counters {
            sink,
            cache: None,
            told: Vec::new(),
        }
    }

    fn tell_all(&mut self, now: Time, disks: &[Disk]) {
        let Counters { sink, cache, told } = self;
        let mut next = 0;
        let mut tell = |dev: Option<Dev>, counter, value| {
            if told.get(next) != Some(&value) {
                sink.counter(now, dev, counter, value);
                told.resize(told.len().max(next + 1), 0);
                told[next] = value;
            }
            next += 1;
        };
        for disk in disks {
            let dev = Some(disk.queue.dev());
            disk.queue
                .counters(|counter, value| tell(dev, counter, value));
        }
        let Some(cache) = cache else { return };
        let usage = cache();
        for (counter, pages) in [
            (Counter::DirtyPages, usage.dirty),
            (Counter::WritebackPages, usage.writeback),
            (Counter::BackgroundLimitPages, usage.background_limit),
            (Counter::DirtyLimitPages, usage.dirty_limit),
            (Counter::CachedPages, usage.cached),
        ] {
            tell(None, counter, u32::try_from(pages).unwrap_or(u32::MAX));
        }
    }
}

impl World {
    /// The last that there is to be said of an instant: time went on, or the run is over.
    #[cold]
    pub(super) fn tell_counters(&mut self, of: Time) {
        if let Some(counters) = &mut self.counters {
            counters.tell_all(of, &self.disks);
        }
    }
}

impl Machine {
    /// Whom to ask for the counters of the page cache, where somebody wants counters;
    /// nobody, when the run is over.
    pub(crate) fn on_counters(&self, ask: Option<Rc<AskCache>>) {
        if let Some(counters) = &mut self.inner.world.borrow_mut().counters {
            counters.cache = ask;
        }
    }
}
